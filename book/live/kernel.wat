;; What a model computes most: products, normalization, attention; of each row four numbers at a time.
;; Pointers are addresses in bytes, all else counts numbers; widths are multiples of 4, those of products of 8.
;; Built by `python book/_tools/kernel.py`; the bytes stand in kernel.js, and a test builds them again.
(module
  (import "exformer" "memory" (memory 1))

  ;; A linear map: out[r][o] = max(floor, bias[o] + sum over i of x[r][i] * w[o][i]); a bias at 0 is none.
  ;; Four of the n rows of w at a time, so that no sum waits for another; n is 4 or more.
  (func (export "products")
    (param $x i32) (param $w i32) (param $out i32) (param $rows i32) (param $width i32) (param $n i32)
    (param $bias i32) (param $floor f32)
    (local $o i32) (local $r i32) (local $p i32) (local $end i32)
    (local $wa i32) (local $wb i32) (local $wc i32) (local $wd i32)
    (local $a v128) (local $b v128) (local $c v128) (local $d v128) (local $numbers v128)
    (local.set $width (i32.shl (local.get $width) (i32.const 2)))
    (loop $outputs
      ;; The last four rows may hold some that were computed already.
      (if (i32.gt_u (i32.add (local.get $o) (i32.const 4)) (local.get $n))
        (then (local.set $o (i32.sub (local.get $n) (i32.const 4)))))
      (local.set $p (local.get $x))
      (local.set $r (i32.const 0))
      (loop $vectors
        (local.set $wa (i32.add (local.get $w) (i32.mul (local.get $o) (local.get $width))))
        (local.set $wb (i32.add (local.get $wa) (local.get $width)))
        (local.set $wc (i32.add (local.get $wb) (local.get $width)))
        (local.set $wd (i32.add (local.get $wc) (local.get $width)))
        (local.set $end (i32.add (local.get $p) (local.get $width)))
        (local.set $a (v128.const f32x4 0 0 0 0))
        (local.set $b (v128.const f32x4 0 0 0 0))
        (local.set $c (v128.const f32x4 0 0 0 0))
        (local.set $d (v128.const f32x4 0 0 0 0))
        (loop $along
          (local.set $numbers (v128.load (local.get $p)))
          (local.set $a (f32x4.add (local.get $a) (f32x4.mul (local.get $numbers) (v128.load (local.get $wa)))))
          (local.set $b (f32x4.add (local.get $b) (f32x4.mul (local.get $numbers) (v128.load (local.get $wb)))))
          (local.set $c (f32x4.add (local.get $c) (f32x4.mul (local.get $numbers) (v128.load (local.get $wc)))))
          (local.set $d (f32x4.add (local.get $d) (f32x4.mul (local.get $numbers) (v128.load (local.get $wd)))))
          (local.set $numbers (v128.load offset=16 (local.get $p)))
          (local.set $a (f32x4.add (local.get $a) (f32x4.mul (local.get $numbers) (v128.load offset=16 (local.get $wa)))))
          (local.set $b (f32x4.add (local.get $b) (f32x4.mul (local.get $numbers) (v128.load offset=16 (local.get $wb)))))
          (local.set $c (f32x4.add (local.get $c) (f32x4.mul (local.get $numbers) (v128.load offset=16 (local.get $wc)))))
          (local.set $d (f32x4.add (local.get $d) (f32x4.mul (local.get $numbers) (v128.load offset=16 (local.get $wd)))))
          (local.set $wa (i32.add (local.get $wa) (i32.const 32)))
          (local.set $wb (i32.add (local.get $wb) (i32.const 32)))
          (local.set $wc (i32.add (local.get $wc) (i32.const 32)))
          (local.set $wd (i32.add (local.get $wd) (i32.const 32)))
          (br_if $along (i32.lt_u
            (local.tee $p (i32.add (local.get $p) (i32.const 32))) (local.get $end))))
        ;; Add up the four numbers of each sum: the halves of a and b, of c and d, then of both.
        (local.set $a (f32x4.add
          (i8x16.shuffle 0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23 (local.get $a) (local.get $b))
          (i8x16.shuffle 8 9 10 11 12 13 14 15 24 25 26 27 28 29 30 31 (local.get $a) (local.get $b))))
        (local.set $c (f32x4.add
          (i8x16.shuffle 0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23 (local.get $c) (local.get $d))
          (i8x16.shuffle 8 9 10 11 12 13 14 15 24 25 26 27 28 29 30 31 (local.get $c) (local.get $d))))
        (local.set $a (f32x4.add
          (i8x16.shuffle 0 1 2 3 8 9 10 11 16 17 18 19 24 25 26 27 (local.get $a) (local.get $c))
          (i8x16.shuffle 4 5 6 7 12 13 14 15 20 21 22 23 28 29 30 31 (local.get $a) (local.get $c))))
        (if (local.get $bias)
          (then (local.set $a (f32x4.add (local.get $a)
            (v128.load (i32.add (local.get $bias) (i32.shl (local.get $o) (i32.const 2))))))))
        (v128.store
          (i32.add (local.get $out) (i32.shl
            (i32.add (i32.mul (local.get $r) (local.get $n)) (local.get $o)) (i32.const 2)))
          (f32x4.max (local.get $a) (f32x4.splat (local.get $floor))))
        (br_if $vectors (i32.lt_u
          (local.tee $r (i32.add (local.get $r) (i32.const 1))) (local.get $rows))))
      (br_if $outputs (i32.lt_u
        (local.tee $o (i32.add (local.get $o) (i32.const 4))) (local.get $n)))))

  ;; The sum of four numbers.
  (func $sum (param $a v128) (result f32)
    (f32.add
      (f32.add (f32x4.extract_lane 0 (local.get $a)) (f32x4.extract_lane 1 (local.get $a)))
      (f32.add (f32x4.extract_lane 2 (local.get $a)) (f32x4.extract_lane 3 (local.get $a)))))

  ;; e^x of four x that are not above 0, to 2 units in the last place: 2^n e^r, where r is at most ln 2 / 2 and e^r
  ;; the polynomial of Cephes' expf. What is below -87 counts as -87.
  (func $exp (param $x v128) (result v128) (local $n v128) (local $e v128)
    (local.set $x (f32x4.max (local.get $x) (f32x4.splat (f32.const -87))))
    (local.set $n (f32x4.nearest (f32x4.mul (local.get $x) (f32x4.splat (f32.const 1.44269504)))))
    ;; less n ln 2, in two parts: n times the first is exact
    (local.set $x (f32x4.sub (local.get $x) (f32x4.mul (local.get $n) (f32x4.splat (f32.const 0.693359375)))))
    (local.set $x (f32x4.add (local.get $x) (f32x4.mul (local.get $n) (f32x4.splat (f32.const 2.12194440e-4)))))
    (local.set $e (f32x4.splat (f32.const 1.9875691500e-4)))
    (local.set $e (f32x4.add (f32x4.mul (local.get $e) (local.get $x)) (f32x4.splat (f32.const 1.3981999507e-3))))
    (local.set $e (f32x4.add (f32x4.mul (local.get $e) (local.get $x)) (f32x4.splat (f32.const 8.3334519073e-3))))
    (local.set $e (f32x4.add (f32x4.mul (local.get $e) (local.get $x)) (f32x4.splat (f32.const 4.1665795894e-2))))
    (local.set $e (f32x4.add (f32x4.mul (local.get $e) (local.get $x)) (f32x4.splat (f32.const 1.6666665459e-1))))
    (local.set $e (f32x4.add (f32x4.mul (local.get $e) (local.get $x)) (f32x4.splat (f32.const 5.0000001201e-1))))
    (local.set $e (f32x4.add (f32x4.mul (local.get $e) (local.get $x)) (f32x4.splat (f32.const 1))))
    (local.set $e (f32x4.add (f32x4.mul (local.get $e) (local.get $x)) (f32x4.splat (f32.const 1))))
    (f32x4.mul (local.get $e) ;; the bits of 2^n:
      (i32x4.shl
        (i32x4.add (i32x4.trunc_sat_f32x4_s (local.get $n)) (i32x4.splat (i32.const 127))) (i32.const 23))))

  ;; Layer normalization of n groups of numbers; without centering, root mean square normalization. A bias at 0 is none.
  (func (export "normalize")
    (param $x i32) (param $gain i32) (param $bias i32) (param $out i32) (param $n i32) (param $width i32)
    (param $center i32) (param $epsilon f32)
    (local $end i32) (local $i i32) (local $sum v128) (local $mean v128) (local $scale v128)
    (local.set $end (i32.add (local.get $x) (i32.shl (i32.mul (local.get $n) (local.get $width)) (i32.const 2))))
    (loop $groups
      (local.set $mean (v128.const f32x4 0 0 0 0))
      (if (local.get $center) (then
        (local.set $i (i32.const 0))
        (loop $along
          (local.set $mean (f32x4.add (local.get $mean) (v128.load (i32.add (local.get $x) (local.get $i)))))
          (br_if $along (i32.lt_u
            (local.tee $i (i32.add (local.get $i) (i32.const 16))) (i32.shl (local.get $width) (i32.const 2)))))
        (local.set $mean (f32x4.splat (f32.div (call $sum (local.get $mean)) (f32.convert_i32_u (local.get $width)))))))
      (local.set $sum (v128.const f32x4 0 0 0 0))
      (local.set $i (i32.const 0))
      (loop $along
        (local.set $scale (f32x4.sub (v128.load (i32.add (local.get $x) (local.get $i))) (local.get $mean)))
        (local.set $sum (f32x4.add (local.get $sum) (f32x4.mul (local.get $scale) (local.get $scale))))
        (br_if $along (i32.lt_u
          (local.tee $i (i32.add (local.get $i) (i32.const 16))) (i32.shl (local.get $width) (i32.const 2)))))
      (local.set $scale (f32x4.splat (f32.div (f32.const 1) (f32.sqrt (f32.add (local.get $epsilon)
        (f32.div (call $sum (local.get $sum)) (f32.convert_i32_u (local.get $width))))))))
      (local.set $i (i32.const 0))
      (loop $along
        (local.set $sum (f32x4.mul (v128.load (i32.add (local.get $gain) (local.get $i))) (f32x4.mul (local.get $scale)
          (f32x4.sub (v128.load (i32.add (local.get $x) (local.get $i))) (local.get $mean)))))
        (if (local.get $bias) (then
          (local.set $sum (f32x4.add (local.get $sum) (v128.load (i32.add (local.get $bias) (local.get $i)))))))
        (v128.store (i32.add (local.get $out) (local.get $i)) (local.get $sum))
        (br_if $along (i32.lt_u
          (local.tee $i (i32.add (local.get $i) (i32.const 16))) (i32.shl (local.get $width) (i32.const 2)))))
      (local.set $out (i32.add (local.get $out) (local.get $i)))
      (br_if $groups (i32.lt_u (local.tee $x (i32.add (local.get $x) (local.get $i))) (local.get $end)))))

  ;; Attention of one query and head: out = softmax(factor * q k^T) v. The n rows of k and of v are `stride` apart;
  ;; weights is room for n numbers and 4 more.
  (func (export "attend")
    (param $q i32) (param $k i32) (param $v i32) (param $out i32) (param $weights i32)
    (param $n i32) (param $width i32) (param $stride i32) (param $factor f32)
    (local $i i32) (local $p i32) (local $end i32) (local $most f32) (local $sum v128) (local $a v128)
    (local.set $width (i32.shl (local.get $width) (i32.const 2)))
    (local.set $stride (i32.shl (local.get $stride) (i32.const 2)))
    (local.set $end (i32.add (local.get $weights) (i32.shl (local.get $n) (i32.const 2))))
    ;; the scores, and the highest of them
    (local.set $most (f32.const -inf))
    (local.set $p (local.get $weights))
    (loop $rows
      (local.set $sum (v128.const f32x4 0 0 0 0))
      (local.set $i (i32.const 0))
      (loop $along
        (local.set $sum (f32x4.add (local.get $sum) (f32x4.mul
          (v128.load (i32.add (local.get $q) (local.get $i))) (v128.load (i32.add (local.get $k) (local.get $i))))))
        (br_if $along (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 16))) (local.get $width))))
      (f32.store (local.get $p) (f32.mul (local.get $factor) (call $sum (local.get $sum))))
      (local.set $most (f32.max (local.get $most) (f32.load (local.get $p))))
      (local.set $k (i32.add (local.get $k) (local.get $stride)))
      (br_if $rows (i32.lt_u (local.tee $p (i32.add (local.get $p) (i32.const 4))) (local.get $end))))
    ;; e^score, and the sum; what stands behind the last score adds nothing
    (v128.store (local.get $end) (f32x4.splat (f32.const -inf)))
    (local.set $sum (v128.const f32x4 0 0 0 0))
    (local.set $p (local.get $weights))
    (loop $scores
      (local.set $a (call $exp (f32x4.sub (v128.load (local.get $p)) (f32x4.splat (local.get $most)))))
      (v128.store (local.get $p) (local.get $a))
      (local.set $sum (f32x4.add (local.get $sum) (local.get $a)))
      (br_if $scores (i32.lt_u (local.tee $p (i32.add (local.get $p) (i32.const 16))) (local.get $end))))
    (local.set $sum (f32x4.splat (call $sum (local.get $sum))))
    ;; the rows of v, each times its weight
    (local.set $i (i32.const 0))
    (loop $along
      (v128.store (i32.add (local.get $out) (local.get $i)) (v128.const f32x4 0 0 0 0))
      (br_if $along (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 16))) (local.get $width))))
    (local.set $p (local.get $weights))
    (loop $rows
      (local.set $a (f32x4.div (v128.load32_splat (local.get $p)) (local.get $sum)))
      (local.set $i (i32.const 0))
      (loop $along
        (v128.store (i32.add (local.get $out) (local.get $i)) (f32x4.add
          (v128.load (i32.add (local.get $out) (local.get $i)))
          (f32x4.mul (local.get $a) (v128.load (i32.add (local.get $v) (local.get $i))))))
        (br_if $along (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 16))) (local.get $width))))
      (local.set $v (i32.add (local.get $v) (local.get $stride)))
      (br_if $rows (i32.lt_u (local.tee $p (i32.add (local.get $p) (i32.const 4))) (local.get $end))))))
