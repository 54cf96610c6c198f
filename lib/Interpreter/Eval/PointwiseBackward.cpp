//===- PointwiseBackward.cpp - gradients of activations -------------------===//

#include "Activations.h"
#include "Map.h"

using namespace mlir;

namespace spmd::interp {

/// grad_output * derivative(argument), elementwise.
template <typename F>
static LogicalResult chainRule(OpCall &call, llvm::StringRef argument, F derivative) {
  return mapReals(
      call, [=](double g, double x) { return g * derivative(x); }, call.tensor("grad_output"), call.tensor(argument));
}

void registerPointwiseBackward(EvaluatorRegistry &r) {
  r.add("aten.gelu_backward", [](OpCall &c) {
    return c.string("approximate") == "tanh" ? chainRule(c, "self", geluTanhDerivative)
                                             : chainRule(c, "self", geluErfDerivative);
  });
  r.add("aten.silu_backward", [](OpCall &c) {
    return chainRule(c, "self", [](double x) {
      double s = sigmoid(x);
      return s * (1 + x * (1 - s));
    });
  });
  r.add("aten.tanh_backward", [](OpCall &c) { return chainRule(c, "output", [](double y) { return 1 - y * y; }); });
  r.add("aten.sigmoid_backward",
        [](OpCall &c) { return chainRule(c, "output", [](double y) { return y * (1 - y); }); });
  // Selects instead of multiplying: a NaN gradient does not pass a closed gate.
  r.add("aten.threshold_backward", [](OpCall &c) {
    double threshold = c.number("threshold");
    return mapReals(
        c, [=](double g, double x) { return x <= threshold ? 0.0 : g; }, c.tensor("grad_output"), c.tensor("self"));
  });
}

} // namespace spmd::interp
