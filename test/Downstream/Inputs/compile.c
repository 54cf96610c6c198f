/* compile.c STEP ARTIFACT PLUGIN: the whole of compile.h, in C. */
#include "spmd/Compiler/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct heard {
  int diagnostics, phases, lines;
  char first[8];
} heard;

static void diagnose(void *context, const spmd_diagnostic *d) {
  if (d->size < sizeof *d || d->json[0] != '{' || d->rendered[strlen(d->rendered) - 1] != '\n')
    exit(1);
  ++((heard *)context)->diagnostics;
  printf("%s %s|%s|%s:%lld|%s|%s\n", d->severity == SPMD_ERROR ? "error" : "other", d->code, d->module, d->file,
         (long long)d->line, d->message, d->hint);
}

static void report(void *context, const char *text) {
  for (; *text; ++text)
    ((heard *)context)->lines += *text == '\n';
}

static void progress(void *context, const char *phase) {
  heard *mine = context;
  if (mine->phases++ == 0)
    strncpy(mine->first, phase, sizeof mine->first - 1);
}

int main(int argc, char **argv) {
  const char *words[] = {"--ranks=2", "--policy=class:MLP", "--view=global"};
  heard all;
  spmd_compile_options options;
  /* A caller built with a later header: what this library does not know is zero. */
  struct {
    spmd_compile_options known;
    void *later;
  } longer;
  if (argc < 4)
    return 1;
  memset(&all, 0, sizeof all);
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.input = argv[1];
  options.output = argv[2];
  options.words = words;
  options.num_words = 3;
  options.context = &all;
  options.diagnose = diagnose;
  options.report = report;
  options.progress = progress;
  printf("compiled: %d\n", spmd_compile(&options));
  printf("%d diagnostics, first %s, %s\n", all.diagnostics, all.first,
         all.lines > 5 && all.phases > 7 ? "tables and progress" : "nothing else");

  options.output = "never";
  words[0] = "--rank=2";
  printf("unknown: %d\n", spmd_compile(&options));
  words[0] = "ranks=2";
  printf("no option: %d\n", spmd_compile(&options));
  words[0] = "--ranks=two";
  printf("no number: %d\n", spmd_compile(&options));
  words[0] = "--fuse=maybe";
  printf("no truth: %d\n", spmd_compile(&options));
  words[0] = "--policy";
  printf("no value: %d\n", spmd_compile(&options));
  words[0] = "--mode=zero";
  printf("not allowed: %d\n", spmd_compile(&options));
  words[0] = argv[3];
  printf("plugin: %d\n", spmd_compile(&options));
  words[0] = "--memory-budget=10";
  options.report = NULL;
  options.diagnose = NULL;
  options.progress = NULL;
  printf("silent: %d\n", spmd_compile(&options));

  words[0] = "--ranks=2";
  options.output = argv[2];
  memset(&longer, 0, sizeof longer);
  longer.known = options;
  longer.known.size = sizeof longer;
  printf("later zero: %d\n", spmd_compile(&longer.known));
  longer.later = &longer;
  printf("later set: %d\n", spmd_compile(&longer.known));
  options.size = 0;
  printf("no size: %d, nothing: %d\n", spmd_compile(&options), spmd_compile(NULL));
  printf("version %s\n", spmd_compiler_version());
  return 0;
}
