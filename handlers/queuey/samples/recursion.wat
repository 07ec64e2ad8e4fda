;; Calls itself for ever.
(module
  (memory (export "memory") 1)
  (func $deeper (param i32) (result i32) (i32.add (i32.const 1) (call $deeper (local.get 0))))
  (func (export "_start") (drop (call $deeper (i32.const 0)))))
