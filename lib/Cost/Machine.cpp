//===- Machine.cpp --------------------------------------------------------===//

#include "spmd/Cost/Machine.h"

using namespace spmd;
using namespace spmd::cost;

double MatrixPeaks::of(runtime::DType dtype) const {
  switch (dtype) {
  case runtime::DType::BF16:
    return bf16;
  case runtime::DType::F16:
    return f16;
  case runtime::DType::F64:
    return f64;
  default:
    return f32;
  }
}

double Machine::gemmEfficiency(int64_t side) const {
  double efficiency = gemm.front().efficiency;
  for (const GemmEfficiency &row : gemm)
    if (side >= row.minSide)
      efficiency = row.efficiency;
  return efficiency;
}
