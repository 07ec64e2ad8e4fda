;; Never ends.
(module
  (memory (export "memory") 1)
  (func (export "_start") (loop $ever (br $ever))))
