//===- TinyModel.h - Training the hand-written artifact ----------*- C++ -*-===//

#ifndef SPMD_TEST_UNIT_RUNTIME_CONFORMANCE_TINYMODEL_H
#define SPMD_TEST_UNIT_RUNTIME_CONFORMANCE_TINYMODEL_H

#include "spmd/Runtime/Train/Trainer.h"

#include <gtest/gtest.h>

namespace spmd::runtime {

/// A batch of 7 rows for the tiny model.
struct TinyBatch {
  std::vector<int64_t> ids = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 1, 2};
  std::vector<float> target = std::vector<float>(21, 0.25f);
  int64_t idShape[2] = {7, 2}, targetShape[2] = {7, 3};
  HostTensor inputs[2] = {{ids.data(), DType::I64, 2, idShape}, {target.data(), DType::F32, 2, targetShape}};
};

inline float lossOf(const Trainer &trainer) {
  float loss = 0;
  EXPECT_TRUE(trainer.readOutput(0, &loss, sizeof loss).ok());
  return loss;
}

inline std::vector<float> parameterOf(const Trainer &trainer, const std::string &name) {
  const StateTensor *tensor = trainer.state().find("param", name);
  std::vector<float> values(static_cast<size_t>(tensor->numel()));
  EXPECT_TRUE(trainer.readTensor("param", name, values.data(), values.size() * sizeof(float)).ok());
  return values;
}

/// The losses of ten steps and the final embedding.
inline std::vector<float> trajectoryOf(Trainer &trainer) {
  TinyBatch batch;
  std::vector<float> values;
  for (int step = 0; step < 10; ++step) {
    EXPECT_TRUE(trainer.step(batch.inputs, 2).ok());
    values.push_back(lossOf(trainer));
  }
  for (float value : parameterOf(trainer, "emb.weight"))
    values.push_back(value);
  return values;
}

} // namespace spmd::runtime

#endif // SPMD_TEST_UNIT_RUNTIME_CONFORMANCE_TINYMODEL_H
