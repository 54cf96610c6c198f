//===- ScalarBodies.cpp - what one element of a pointwise op is -----------===//

#include "ScalarBodies.h"

#include "dialects/Aten/AtenInterfaces.h"
#include "dialects/Aten/AtenRandom.h"
#include "dialects/Kernel/Kernel.h"

using namespace mlir;

namespace spmd::fusion {

ScalarBody getScalarBody(Operation *op) {
  // Random numbers come from the element's number in the global tensor, which only a cluster knows.
  if (auto uniform = dyn_cast<aten::PhiloxUniformOp>(op)) {
    int64_t stream = uniform.getStream(), word = uniform.getWord();
    return [=](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
      return kernel::UniformOp::create(b, args[0], args[1], args[2], stream, word);
    };
  }
  auto body = dyn_cast<aten::ScalarBodyOpInterface>(op);
  if (!body || !body.hasScalarBody())
    return nullptr;
  return [body](ImplicitLocOpBuilder &b, ValueRange args) mutable { return body.buildScalarBody(b, args); };
}

} // namespace spmd::fusion
