[
  (system_body)
  (stencil_body)
  (convolution_body)
  (program_body)
  (mapping_body)
  (arguments)
  (reduce)
  (scan)
  (row)
] @indent

["}" ")" "]"] @outdent
