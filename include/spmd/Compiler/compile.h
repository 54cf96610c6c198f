/*===- compile.h - The C interface of the compiler -----------------*- C -*-===*\
|*
|* Compiles a step package to an artifact, as the program spmd-compile does, in
|* the process that calls (libspmd_compiler).
|*
|*   const char *words[] = {"--ranks=4", "--policy=class:Block"};
|*   spmd_compile_options options = {0};
|*   options.size = sizeof options;
|*   options.input = "gpt2.step";
|*   options.output = "gpt2.spmd";
|*   options.words = words;
|*   options.num_words = 2;
|*   options.diagnose = print; // void print(void *, const spmd_diagnostic *d) { fputs(d->rendered, stderr); }
|*   if (spmd_compile(&options) != SPMD_OK) ...
|*
|* Structs begin with their size: the caller says in `size` how much of a struct
|* it knows of, and members that come later are as zero; a callback looks at
|* `size` before it reads what an older library does not have. What ends the
|* process that compiles (LLVM, when memory is short) ends the caller's here; a
|* program that has to go on starts spmd-compile instead.
|*
\*===----------------------------------------------------------------------===*/

#ifndef SPMD_COMPILER_COMPILE_H
#define SPMD_COMPILER_COMPILE_H

#include "spmd/Runtime/spmd.h" /* SPMD_API, and what functions return: SPMD_OK, SPMD_BAD_INPUT, SPMD_FAILED */

#ifdef __cplusplus
extern "C" {
#endif

/* How much a diagnostic matters. */
enum { SPMD_NOTE = 0, SPMD_WARNING = 1, SPMD_ERROR = 2, SPMD_REMARK = 3 };

/* One diagnostic. Texts live until the callback returns; what is not known is an empty text, or 0. */
typedef struct spmd_diagnostic {
  size_t size;
  int32_t severity;
  const char *code;     /* what programs react to ("memory-budget"); most have none */
  const char *message;  /* what is wrong */
  const char *module;   /* path of the module it is in */
  const char *file;     /* the innermost line of the user's program */
  int64_t line;
  int64_t column;
  const char *hint;     /* what the user can change */
  const char *rendered; /* all of it for people, with notes and line ends */
  const char *json;     /* all of it for programs: docs/diagnostics.md */
} spmd_diagnostic;

/* What spmd_compile is to do. Zero-initialized but for `size`: nothing is said, and all options have their defaults. */
typedef struct spmd_compile_options {
  size_t size;        /* sizeof(spmd_compile_options) */
  const char *input;  /* folder NAME.step, or IR with --compile-from */
  const char *output; /* artifact folder or file of IR */
  const char *const *words; /* further options, as on the command line of spmd-compile: "--ranks=4", "--quiet" */
  size_t num_words;
  void *context; /* given to all callbacks */
  void (*diagnose)(void *context, const spmd_diagnostic *diagnostic);
  void (*report)(void *context, const char *text);    /* takes the tables of units, collectives and arena */
  void (*progress)(void *context, const char *phase); /* told what begins, and "" at the end */
} spmd_compile_options;

/* Compiles. Returns SPMD_OK; SPMD_BAD_INPUT, what was given is refused; SPMD_FAILED, a failure of the compiler or of
 * the disk. Writes the whole output or none of it. Calls from several threads run one after the other. */
SPMD_API int32_t spmd_compile(const spmd_compile_options *options);

/* "0.1.0" */
SPMD_API const char *spmd_compiler_version(void);

#ifdef __cplusplus
}
#endif

#endif /* SPMD_COMPILER_COMPILE_H */
