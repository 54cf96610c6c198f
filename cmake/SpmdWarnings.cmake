# Warnings are errors in our own code; generated and system headers are included as SYSTEM.
function(spmd_enable_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Werror -Wno-unused-parameter)
endfunction()
