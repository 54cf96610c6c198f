//===- Roles.h - What the arguments and results of a step are ---*- C++ -*-===//
//
// A StableHLO function has arguments and results; which are parameters, and which result is the next value of which
// argument, a JSON file says by the names that JAX gives them: params['blocks_0']['w'].
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_IMPORT_STABLEHLO_ROLES_H
#define SPMD_LIB_IMPORT_STABLEHLO_ROLES_H

#include "../Package/StepPackage.h"

#include <map>

namespace spmd::stablehlo {

/// A name in parts: params['blocks_0'][1].w and params.blocks_0.1.w are params, blocks_0, 1, w.
using Path = std::vector<std::string>;
Path parsePath(llvm::StringRef text);
std::string joinPath(llvm::ArrayRef<std::string> path);

struct ArgumentRole {
  step::InputKind kind = step::InputKind::param;
  std::string state;            ///< the name of a state, or of a hyper-parameter
  std::optional<double> number; ///< init of a state, value of a hyper-parameter
  int64_t batchDim = 0;         ///< -1: shared by all ranks
};

struct ResultRole {
  enum class Kind { loss, output, update } kind = Kind::output;
  Path updates; ///< which arguments
};

/// What the JSON file says.
class Roles {
public:
  static runtime::Expected<Roles> read(const std::string &path);

  const std::string &getName() const { return name; }
  const std::string &getFile() const { return file; }

  /// The role with the longest key that `path` begins with, and what of the path is not in the key; null when no key
  /// fits.
  const ArgumentRole *findArgument(const Path &path, Path &rest);
  const ResultRole *findResult(const Path &path, Path &rest);

  /// A key that nothing asked for, with its pointer; empty when there is none.
  std::string findUnused() const;

private:
  template <typename Role>
  struct Entry {
    Path path;
    std::string pointer;
    Role role;
    bool isUsed = false;
  };
  template <typename Role>
  static const Role *find(std::vector<Entry<Role>> &entries, const Path &path, Path &rest);
  void readArgument(const std::string &key, runtime::JsonValue json);
  void readResult(const std::string &key, runtime::JsonValue json);

  std::string name = "step", file;
  std::vector<Entry<ArgumentRole>> arguments;
  std::vector<Entry<ResultRole>> results;
};

} // namespace spmd::stablehlo

#endif // SPMD_LIB_IMPORT_STABLEHLO_ROLES_H
