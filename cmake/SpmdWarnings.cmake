# Warnings are errors in our own code; generated and system headers are included as SYSTEM. Clang's warnings about views
# of what is gone (-Wdangling and its kind, -Wreturn-stack-address) are on by default: test/Hygiene/warnings.test.
function(spmd_enable_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Werror -Wno-unused-parameter)
endfunction()
