//===- CommandLine.cpp - Command line of spmd-compile ---------------------===//

#include "CommandLine.h"
#include "spmd/Version.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace {

/// What is written behind an option's name: "=VALUE", or nothing.
struct BehindName : cl::parser<std::string> {
  using parser::parser;
  bool parse(cl::Option &, StringRef, StringRef value, std::string &text) {
    text = value.data() ? "=" + value.str() : ""; // an empty value has a place
    return false;
  }
};

/// One cl::opt for each option of the compiler. They live in parseCommandLine, not in globals, so that no other code
/// can read them. What is no text is read as the C interface reads it, once all words are there: LLVM's parsers write
/// what is wrong with a number to standard error, whoever listens.
class ParsedOptions {
public:
  explicit ParsedOptions(spmd::OptionTexts &given) : texts(given) {
    spmd::forEachOption(texts, [&](const spmd::OptionInfo &info, auto &value) { add(info, value); });
  }

  /// Puts the words where the options are; what is wrong with one, if something is.
  std::optional<std::string> finish() {
    for (const auto &copy : copies)
      if (std::optional<std::string> problem = copy())
        return problem;
    return std::nullopt;
  }

  cl::OptionCategory category{"spmd-compile options"};

private:
  void add(const spmd::OptionInfo &info, std::string &) { addText(info, cl::ValueRequired, info.value); }
  void add(const spmd::OptionInfo &info, int64_t &) { addText(info, cl::ValueRequired, "N"); }
  void add(const spmd::OptionInfo &info, bool &) { addText(info, cl::ValueOptional, "true|false"); }
  void add(const spmd::OptionInfo &info, std::optional<std::string> &) { addText(info, cl::ValueOptional, info.value); }

  void addText(const spmd::OptionInfo &info, cl::ValueExpected expected, StringRef value) {
    auto option = std::make_unique<cl::opt<std::string, false, BehindName>>(
        info.name, cl::desc(info.help), cl::value_desc(value), expected, cl::cat(category));
    copies.push_back([this, text = option.get()]() -> std::optional<std::string> {
      if (text->getNumOccurrences() == 0)
        return std::nullopt;
      return spmd::setOption(texts, "--" + text->ArgStr.str() + text->getValue());
    });
    options.push_back(std::move(option));
  }

  void add(const spmd::OptionInfo &info, std::vector<std::string> &value) {
    auto option = std::make_unique<cl::list<std::string>>(info.name, cl::desc(info.help), cl::value_desc(info.value),
                                                          cl::cat(category));
    if (info.isCommaSeparated)
      option->setMiscFlag(cl::CommaSeparated);
    copies.push_back([&value, list = option.get()] {
      value = *list;
      return std::nullopt;
    });
    options.push_back(std::move(option));
  }

  std::vector<std::unique_ptr<cl::Option>> options;
  std::vector<std::function<std::optional<std::string>()>> copies;
  spmd::OptionTexts &texts;
};

} // namespace

CommandLine parseCommandLine(int argc, char **argv) {
  CommandLine line;
  ParsedOptions parsed(line.texts);
  cl::opt<std::string, true> input(cl::Positional, cl::desc("STEP: folder NAME.step, or IR with --compile-from"),
                                   cl::location(line.texts.input), cl::cat(parsed.category));
  cl::opt<std::string, false, BehindName> printPipeline(
      "print-pipeline", cl::desc("Print every pass and why it is there, and exit"), cl::value_desc("true|false"),
      cl::ValueOptional, cl::cat(parsed.category));
  cl::opt<std::string, true> diagnostics(
      "diagnostics", cl::desc("How diagnostics are written: text (default), or json, a line for each"),
      cl::value_desc("format"), cl::location(line.diagnostics), cl::init("text"), cl::cat(parsed.category));
  cl::opt<std::string> descriptor(
      "diagnostics-fd",
      cl::desc("With --diagnostics=json the open file that they are written to (default 2, standard "
               "error); with another one, standard error has the text as well"),
      cl::value_desc("N"), cl::init("2"), cl::cat(parsed.category));
  cl::HideUnrelatedOptions(parsed.category);
  cl::SetVersionPrinter(
      [](raw_ostream &out) { out << "spmd-compile " SPMD_VERSION ", " SPMD_BUILD ", LLVM " LLVM_VERSION_STRING "\n"; });
  raw_string_ostream stream(line.problem);
  bool isParsed = cl::ParseCommandLineOptions(argc, argv,
                                              "Compiles a captured training step for N ranks.\n\n"
                                              "  spmd-compile gpt2.step -o gpt2.spmd --ranks=4 --policy=class:Block\n",
                                              &stream);
  if (isParsed)
    line.problem.clear();
  line.badValue = parsed.finish();
  line.printPipeline = printPipeline.getNumOccurrences() > 0 && printPipeline != "=false";
  if (line.printPipeline && !printPipeline.empty() && printPipeline != "=true")
    line.badValue = "--print-pipeline" + printPipeline.getValue() + ": expected true, false";
  if (StringRef(descriptor).getAsInteger(10, line.diagnosticsDescriptor))
    line.badValue = "--diagnostics-fd=" + descriptor.getValue() + ": expected a whole number";
  return line;
}
