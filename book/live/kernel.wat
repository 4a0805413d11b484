;; The products of a linear map: out[r][o] = sum over i of x[r][i] * w[o][i], four numbers at a time.
;; x, w and out are addresses in bytes; width is a multiple of 8, in numbers.
;; Built by `python book/_tools/kernel.py`; the bytes stand in kernel.js, and a test builds them again.
(module
  (import "exformer" "memory" (memory 1))
  (func (export "products")
    (param $x i32) (param $w i32) (param $out i32) (param $rows i32) (param $width i32) (param $n i32)
    (local $o i32) (local $r i32) (local $p i32) (local $q i32) (local $end i32)
    (local $even v128) (local $odd v128)
    (local.set $width (i32.shl (local.get $width) (i32.const 2)))
    (loop $outputs
      (local.set $end (i32.add (local.get $w) (local.get $width)))
      (local.set $p (local.get $x))
      (local.set $r (i32.const 0))
      (loop $vectors
        (local.set $q (local.get $w))
        (local.set $even (v128.const f32x4 0 0 0 0))
        (local.set $odd (v128.const f32x4 0 0 0 0))
        (loop $numbers
          (local.set $even (f32x4.add (local.get $even)
            (f32x4.mul (v128.load (local.get $p)) (v128.load (local.get $q)))))
          (local.set $odd (f32x4.add (local.get $odd)
            (f32x4.mul (v128.load offset=16 (local.get $p)) (v128.load offset=16 (local.get $q)))))
          (local.set $p (i32.add (local.get $p) (i32.const 32)))
          (br_if $numbers (i32.lt_u
            (local.tee $q (i32.add (local.get $q) (i32.const 32))) (local.get $end))))
        (local.set $even (f32x4.add (local.get $even) (local.get $odd)))
        (f32.store
          (i32.add (local.get $out) (i32.shl
            (i32.add (i32.mul (local.get $r) (local.get $n)) (local.get $o)) (i32.const 2)))
          (f32.add
            (f32.add (f32x4.extract_lane 0 (local.get $even)) (f32x4.extract_lane 1 (local.get $even)))
            (f32.add (f32x4.extract_lane 2 (local.get $even)) (f32x4.extract_lane 3 (local.get $even)))))
        (br_if $vectors (i32.lt_u
          (local.tee $r (i32.add (local.get $r) (i32.const 1))) (local.get $rows))))
      (local.set $w (local.get $end))
      (br_if $outputs (i32.lt_u
        (local.tee $o (i32.add (local.get $o) (i32.const 1))) (local.get $n))))))
