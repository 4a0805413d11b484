;; The products of a linear map, four numbers at a time: nearly all of the time that a model takes.
;; x, w and out are addresses in bytes, all else counts numbers; the width is a multiple of 8.
;; `python book/_tools/kernel.py` writes it into matrix.js, and a test compares the two.
(module
  (import "exformer" "memory" (memory 1))

  ;; out[r][o] = sum over i of x[r][i] * w[o][i]. Four of the n rows of w at a time, so that no sum waits for
  ;; another; n is 4 or more.
  (func (export "products")
    (param $x i32) (param $w i32) (param $out i32) (param $rows i32) (param $width i32) (param $n i32)
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
        (v128.store
          (i32.add (local.get $out) (i32.shl
            (i32.add (i32.mul (local.get $r) (local.get $n)) (local.get $o)) (i32.const 2)))
          (local.get $a))
        (br_if $vectors (i32.lt_u
          (local.tee $r (i32.add (local.get $r) (i32.const 1))) (local.get $rows))))
      (br_if $outputs (i32.lt_u
        (local.tee $o (i32.add (local.get $o) (i32.const 4))) (local.get $n))))))
