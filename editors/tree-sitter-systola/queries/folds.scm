[
  (system)
  (stencil)
  (convolution)
  (program)
  (mapping)
  (when)
  (table_declaration)
  (variable_declaration)
  (function_declaration)
] @fold
