;; Tries to open a file below every place that might be open; ends with the number of those that were.
(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 256) "etc/passwd")
  (func (export "_start")
    (local $place i32) (local $opened i32)
    (loop $next
      (if (i32.eqz (call $open (local.get $place) (i32.const 1) (i32.const 256) (i32.const 10)
                    (i32.const 0) (i64.const 2) (i64.const 2) (i32.const 0) (i32.const 512)))
        (then (local.set $opened (i32.add (local.get $opened) (i32.const 1)))))
      (local.set $place (i32.add (local.get $place) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $place) (i32.const 64))))
    (call $exit (local.get $opened))))
