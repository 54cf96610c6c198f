//===- CommandLine.cpp - Command line of spmd-compile ---------------------===//

#include "CommandLine.h"
#include "spmd/Version.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace {

/// One cl::opt for each option of the compiler. They live in parseCommandLine, not in globals, so that no other code
/// can read them, and write where the options are; but those that may come several times or without a value.
class ParsedOptions {
public:
  explicit ParsedOptions(spmd::OptionTexts &texts) {
    spmd::forEachOption(texts, [&](const spmd::OptionInfo &info, auto &value) { add(info, value); });
  }

  void finish() {
    for (const std::function<void()> &copy : copies)
      copy();
  }

  cl::OptionCategory category{"spmd-compile options"};

private:
  template <typename T>
  void add(const spmd::OptionInfo &info, T &value) {
    options.push_back(std::make_unique<cl::opt<T, /*ExternalStorage=*/true>>(
        info.name, cl::desc(info.help), cl::value_desc(info.value), cl::location(value), cl::init(T(value)),
        cl::cat(category)));
  }

  void add(const spmd::OptionInfo &info, std::vector<std::string> &value) {
    auto option = std::make_unique<cl::list<std::string>>(info.name, cl::desc(info.help), cl::value_desc(info.value),
                                                          cl::cat(category));
    if (info.isCommaSeparated)
      option->setMiscFlag(cl::CommaSeparated);
    copies.push_back([&value, list = option.get()] { value = *list; });
    options.push_back(std::move(option));
  }

  void add(const spmd::OptionInfo &info, std::optional<std::string> &value) {
    auto option = std::make_unique<cl::opt<std::string>>(info.name, cl::desc(info.help), cl::value_desc(info.value),
                                                         cl::ValueOptional, cl::cat(category));
    copies.push_back([&value, text = option.get()] {
      if (text->getNumOccurrences() > 0)
        value = text->getValue();
    });
    options.push_back(std::move(option));
  }

  std::vector<std::unique_ptr<cl::Option>> options;
  std::vector<std::function<void()>> copies;
};

} // namespace

CommandLine parseCommandLine(int argc, char **argv) {
  CommandLine line;
  ParsedOptions parsed(line.texts);
  cl::opt<std::string, true> input(cl::Positional, cl::desc("STEP: folder NAME.step, or IR with --compile-from"),
                                   cl::location(line.texts.input), cl::cat(parsed.category));
  cl::opt<bool, true> printPipeline("print-pipeline", cl::desc("Print every pass and why it is there, and exit"),
                                    cl::location(line.printPipeline), cl::cat(parsed.category));
  cl::opt<std::string, true> diagnostics(
      "diagnostics", cl::desc("How diagnostics are written: text (default), or json, a line for each"),
      cl::value_desc("format"), cl::location(line.diagnostics), cl::init("text"), cl::cat(parsed.category));
  cl::opt<int, true> descriptor(
      "diagnostics-fd", cl::desc("With --diagnostics=json the open file that they are written to (default 2, standard "
                                 "error); with another one, standard error has the text as well"),
      cl::value_desc("N"), cl::location(line.diagnosticsDescriptor), cl::init(2), cl::cat(parsed.category));
  cl::HideUnrelatedOptions(parsed.category);
  cl::SetVersionPrinter([](raw_ostream &out) {
    out << "spmd-compile " SPMD_VERSION ", " SPMD_BUILD ", LLVM " LLVM_VERSION_STRING "\n";
  });
  raw_string_ostream stream(line.problem);
  bool isParsed = cl::ParseCommandLineOptions(argc, argv,
                                              "Compiles a captured training step for N ranks.\n\n"
                                              "  spmd-compile gpt2.step -o gpt2.spmd --ranks=4 --policy=class:Block\n",
                                              &stream);
  if (isParsed)
    line.problem.clear();
  parsed.finish();
  return line;
}
