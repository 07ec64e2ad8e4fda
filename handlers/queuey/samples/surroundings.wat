;; Looks for variables of the environment and for sockets; ends with the number of variables, plus 100 for a socket.
(module
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sock_accept" (func $accept (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (local $place i32) (local $found i32)
    (drop (call $environ (i32.const 0) (i32.const 4)))
    (local.set $found (i32.load (i32.const 0)))
    (loop $next
      (if (i32.eqz (call $accept (local.get $place) (i32.const 0) (i32.const 8)))
        (then (local.set $found (i32.add (local.get $found) (i32.const 100)))))
      (local.set $place (i32.add (local.get $place) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $place) (i32.const 64))))
    (call $exit (local.get $found))))
