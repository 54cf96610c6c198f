"""Mistakes that scripts/mistakes plants one at a time: what a tired engineer writes and a review may miss.

Each changes a result, or drops a check, for some input that users can have. `right` stands in `file` exactly once;
where it has ⟦ and ⟧, `wrong` takes the place of what is between them, and the rest says where that is. A text that ends
with a semicolon is a statement, any other an expression. `tests` are filters of lit, those that should find it first.
`equivalent` is the reason why no test can find it, where there is one.
"""
from typing import NamedTuple, Tuple


class Mistake(NamedTuple):
    name: str
    file: str
    right: str
    wrong: str
    breaks: str
    tests: Tuple[str, ...]
    equivalent: str = ""


# Folders of lib/ that have none, and why.
WITHOUT = {"lib/Kernels/Emulate/Runtime": "linked into artifacts without a library that reads the environment"}

MISTAKES = [
    # Import
    Mistake("import-split-write", "lib/Import/Functionalize.cpp",
            "start += ⟦maker.results[i]->spec.shape[dim]⟧;", "view.type.getDimSize(dim)",
            "A write into one part of an uneven split lands where that part would begin if all were of its size.",
            ("Import/functionalize", "Python/test_graph_equals_eager", "Coverage/test_views")),
    Mistake("import-permuted-write", "lib/Import/Functionalize.cpp",
            "⟦dims[wrapDim(from, rank)] = to;⟧", "dims[to] = wrapDim(from, rank);",
            "A write through a permuted view of three dimensions goes through the same permutation, not its inverse.",
            ("Import/functionalize", "Python/test_graph_equals_eager", "Coverage/test_views")),
    Mistake("import-index-bound", "lib/Import/InferIndexBounds.cpp",
            "bound ? ⟦std::min(*bound, high)⟧ : high", "std::max(*bound, high)",
            "Row numbers that two tables are read with are checked against the larger table only.",
            ("Import/infer-index-bounds", "Python/test_row_numbers")),

    # Units
    Mistake("units-ignored-below", "lib/ShardUnits/ShardUnits.cpp",
            "for (size_t below : ⟦tree.getSubtree(*module)⟧)", "std::vector<size_t>{*module}",
            "An ignored module's children are sharded all the same.",
            ("SpmdShardUnitsTests", "Python/units")),
    Mistake("units-strict-tied", "lib/Transforms/Units/AssignShardUnits.cpp",
            "⟦request.strictTied |= strictTied;⟧", "request.strictTied = strictTied.getValue();",
            "A plan file that forbids torn ties is not listened to.",
            ("Transforms/Units", "Python/units")),

    # Partition
    Mistake("partition-fill-of-min", "lib/Transforms/Partition/Propagate.cpp",
            "if (kind == ReduceKind::min)\n    return ⟦std::numeric_limits<double>::infinity()⟧;", "0.0",
            "Padded rows are zero for a minimum, in the pass and in its verifier.",
            ("Execution/interp/small", "Transforms/Partition", "Python/test_uint8")),
    Mistake("partition-variance", "lib/Transforms/Partition/SplitMeans.cpp",
            "static_cast<double>(count) - ⟦aten::getScalarValue(op.getCorrection())⟧", "0.0",
            "An unbiased variance becomes a biased one.",
            ("Transforms/Partition/split-means", "Python/test_convnets")),
    Mistake("partition-view-pre", "lib/Transforms/Partition/States.cpp",
            "int64_t outer = ⟦product(from.take_front(state.dim)) * state.pre⟧;",
            "product(from.take_front(state.dim))",
            "A view of a dimension that is sharded inside forgets what stands before the rank's part.",
            ("SpmdPartitionTests", "Transforms/Partition/partition")),
    Mistake("partition-slice-of-parts", "lib/Transforms/Partition/Parts.cpp",
            "(*rows == 0 || ⟦start.getInt() % *rows != 0⟧)", "false",
            "A slice that begins inside one of several batches is taken for a whole batch.",
            ("Execution/interp/small", "Transforms/Partition/partition")),
    Mistake("partition-unverified-fill", "lib/Transforms/Partition/VerifyPartition.cpp",
            "if (⟦mask.getFill().convertToDouble() != neutral⟧)", "false",
            "Padded rows may be filled with anything.",
            ("Transforms/Partition/verify-partition",)),

    # Optimizers
    Mistake("optimizer-amsgrad", "lib/Transforms/Optimizer/DecomposeFused.cpp",
            "⟦second = results.maxExpAvgSq = lane.binary<MaximumOp>(lane.align(op.getMaxExpAvgSqs()[index]), second);⟧",
            "results.maxExpAvgSq = lane.binary<MaximumOp>(lane.align(op.getMaxExpAvgSqs()[index]), second);",
            "AMSGrad keeps the maximum and divides by the average.",
            ("Transforms/Optimizer", "Python/test_decompose_optimizer", "Python/test_optimizers")),
    Mistake("optimizer-shared-tensor", "lib/Transforms/Optimizer/MergeListOps.cpp",
            "⟦others.append(b.size(), b.shared);⟧", "others.append(b.size(), a.shared);",
            "The second parameter group takes the first one's learning rate tensor.",
            ("Transforms/Optimizer", "Python/test_decompose_optimizer", "Python/test_optimizers")),

    # Collectives, movement, memory
    Mistake("collectives-kinds", "lib/Transforms/Collectives/BucketCollectives.cpp",
            "⟦llvm::append_range(kinds, op.getKinds());⟧",
            "kinds.append(op.getKinds().size(), AllReduceOp(message.members.front()).getKinds()[0]);",
            "A maximum that travels with a sum is summed.",
            ("Transforms/Collectives",)),
    Mistake("collectives-read-after-release", "lib/Transforms/Collectives/VerifySchedule.cpp",
            "if (⟦last && op->isBeforeInBlock(last)⟧)", "false",
            "A gathered buffer may be read after its release.",
            ("Transforms/Collectives/verify-schedule",)),
    Mistake("movement-gap", "lib/Transforms/Movement/JoinSliceGradients.cpp",
            "if (⟦std::exchange(end, slice.start + slice.rows) != slice.start⟧)",
            "(end = slice.start + slice.rows, false)",
            "Gradients of slices that overlap in one place and leave out another are put side by side.",
            ("Transforms/Movement",)),
    Mistake("memory-nested-gap", "lib/Transforms/Memory/Placement.cpp",
            "⟦end = std::max(end, takenEnd);⟧", "end = takenEnd;",
            "A buffer is placed inside a long one that a short one lies in front of.",
            ("SpmdMemoryTests", "Execution/host/memory")),

    # Kernels of the step, and its plan
    Mistake("kernels-mask-edge", "lib/Conversion/AtenToKernel/LowerSpmd.cpp",
            "return s.select(s.compare(⟦\"lt\"⟧, args[0], s.constant(total)), args[1], args[2]);", "\"le\"",
            "The first padded row is not filled.",
            ("Conversion/AtenToKernel", "Execution/interp/kernels", "Models/test_own")),
    Mistake("kernels-cluster-layout", "lib/Conversion/AtenToKernel/Clusters.cpp",
            "if (⟦computed->second != *layout || input.guarded || input.node->isColumnReduce()⟧)",
            "input.guarded || input.node->isColumnReduce()",
            "What is read transposed is fused with what computes it, element by element.",
            ("Conversion/AtenToKernel", "Execution/host/fusion-bits")),
    Mistake("kernels-ignored-rows", "lib/Conversion/AtenToKernel/LowerLosses.cpp",
            "return slopeWhere(b, ⟦counts(b, args)⟧, args);",
            "ScalarBuilder(b, indexType).compare(\"eq\", args[1], args[1])",
            "Targets that the loss ignores still push down the logits of their rows.",
            ("Conversion/AtenToKernel/cross-entropy", "Coverage/test_losses", "Models/test_masks")),
    Mistake("plan-overwritten-operand", "lib/Conversion/KernelToPlan/BufferAssignment.cpp",
            "if (⟦read.overlaps(slot) && (read != slot || !kernel.canAlias(operand.getOperandNumber(), index))⟧)",
            "read.overlaps(slot) && read != slot",
            "A kernel writes over an operand that it reads at other places.",
            ("Conversion/KernelToPlan", "Execution/host/mlp", "Execution/host/gpt")),
    Mistake("plan-dropped-wait", "lib/Conversion/KernelToPlan/CommandEmitter.cpp",
            "⟦gate(stream, loc);⟧\n    return create<plan::AllReduceOp>", "",
            "An all-reduce does not wait for the kernel that computes its operand.",
            ("Conversion/KernelToPlan", "Execution/host/mlp")),
    Mistake("plan-chunk-offset", "lib/Conversion/KernelToPlan/FlattenCollectives.cpp",
            "return getMap(context, chunk, first, ⟦rank * outer * chunk * inner⟧);", "rank * chunk * inner",
            "Rows gathered or scattered inside a tensor come from the wrong place of the ranks' chunks.",
            ("Conversion/KernelToPlan/flatten-collectives",)),
    Mistake("plan-late-outputs", "lib/Conversion/KernelToPlan/CommandEmitter.cpp",
            "if (⟦isa<UpdateAttr>(getResultRole(step, index)) == updates⟧)",
            "isa<UpdateAttr>(getResultRole(step, index)) != updates",
            "A step that returns a buffer's old value returns the new one.",
            ("Conversion/KernelToPlan", "Python/test_compile", "Python/test_capture_features")),
    Mistake("json-ignored-index", "lib/Conversion/PlanToJson/ManifestJson.cpp",
            "if (std::optional<int64_t> ignored = ⟦input.getIgnoreIndex()⟧)", "decltype(input.getIgnoreIndex())()",
            "Targets that the loss ignores are refused as bad row numbers.",
            ("Conversion/PlanToJson", "Python/test_row_numbers")),

    # Code
    Mistake("code-merged-index", "lib/Kernels/SimplifyCluster.cpp",
            "if (⟦llvm::is_contained({original[d], original[d + 1]}, static_cast<int64_t>(index.getDim()))⟧)",
            "original[d + 1] == static_cast<int64_t>(index.getDim())",
            "A position in the outer of two loops that became one is always 0.",
            ("Execution/host/kernels/test_cluster", "Kernels/lower-kernels")),
    Mistake("code-order-of-equals", "lib/Kernels/RowValues.cpp",
            "arith::CmpIOp::create(b, ⟦arith::CmpIPredicate::slt⟧, x.index, y.index)", "arith::CmpIPredicate::sgt",
            "A stable sort turns equal elements round.",
            ("Coverage/test_sorting",)),
    Mistake("host-mask-gradient", "lib/Kernels/Host/EmitAttentionBackward.cpp",
            "b.mul(batch, maskShape[0] == 1 ? 0 : ⟦maskShape[1] * plane⟧)", "plane",
            "The gradient of an attention mask of several heads lands in the wrong rows from the second batch on.",
            ("Coverage/test_nn", "Execution/host/kernels", "Models/test_masks")),
    Mistake("host-batched-scatter", "lib/Kernels/Host/EmitRows.cpp",
            "Value to = b.mul(⟦b.add(firstRow, id)⟧, size), from = b.mul(position, size);", "id",
            "Rows scattered into several tables all go to the first.",
            ("Coverage/test_indexing", "Execution/host/kernels")),
    Mistake("gpu-dropped-barrier", "lib/Kernels/Gpu/BlockOps.cpp",
            "if (isInLoop)\n    ⟦b.barrier();⟧", "",
            "Sums of one iteration are overwritten while threads still read those of the one before.",
            ("Kernels/Gpu/lower-cluster-groups", "Execution/simt/test_simt_clusters", "Execution/simt")),
    Mistake("emulate-store-as-load", "lib/Kernels/Emulate/ThreadFunction.cpp",
            "rewriteAccess(op, store.getAddrMutable(), ⟦\"spmd_emulation_store\"⟧, number)", "\"spmd_emulation_load\"",
            "The emulator takes writes for reads and finds no race between them.",
            ("Kernels/emulate-kernels", "Execution/simt/test_emulator")),

    # Interpreter, pipeline
    Mistake("interpreter-replicas", "lib/Interpreter/Lockstep.cpp",
            "if (⟦!tensors[group[0]].identical(tensors[rank])⟧)", "false",
            "A replicated value may differ from rank to rank.",
            ("Interpreter/",)),
    Mistake("interpreter-nan", "lib/Interpreter/Eval/Reductions.cpp",
            "if (⟦std::isnan(value) || sign * value > sign * best⟧)", "sign * value > sign * best",
            "The reference's maximum loses a not-a-number.",
            ("SpmdInterpreterTests", "Python/test_interpreter_ops", "Coverage/test_reductions")),
    Mistake("pipeline-batch-dim", "lib/Pipelines/BatchDims.cpp",
            "if (dim < -1 || ⟦dim >= rank⟧)", "dim > rank",
            "--batch-dim takes a dimension one behind the last.",
            ("spmd-compile/options", "Execution/interp/batch-hints")),

    # Runtime
    Mistake("runtime-min-of-nan", "lib/Runtime/Core/Reduce.cpp",
            "return ⟦x < a || x != x ? x : a⟧;", "x < a ? x : a",
            "A minimum over the ranks loses a not-a-number.",
            ("SpmdRuntimeTests",)),
    Mistake("runtime-batched-product", "lib/Runtime/Core/Certificate.cpp",
            "⟦static_cast<__int128>(g.batch - 1) * stride⟧", "static_cast<__int128>(0)",
            "The certificate lets a batched product read behind its operand.",
            ("SpmdRuntimeTests",)),
    Mistake("runtime-gather-meeting", "lib/Runtime/Host/ThreadsCommunicator.cpp",
            "std::memcpy(destination, source, bytes);\n  }\n  return ⟦meet(call)⟧;", "Status::success()",
            "A rank goes on, and overwrites what it sent, while others still gather it.",
            ("SpmdRuntimeTests", "Execution/host/bits")),
    Mistake("runtime-bias-column", "lib/Runtime/Host/Gemm.cpp",
            "if (epilogue.bias)\n      ⟦epilogue.bias += column;⟧", "",
            "Where several threads share a wide product, all add the bias of the first columns.",
            ("SpmdRuntimeTests",)),
    Mistake("runtime-index-edge", "lib/Runtime/Host/CheckIndex.cpp",
            "(value < low || ⟦value >= high⟧)", "value > high",
            "The row number one behind the last is taken.",
            ("SpmdRuntimeTests", "Python/test_row_numbers", "spmd-run/bad-input")),

    # Dialects
    Mistake("aten-norm-fill", "dialects/Aten/ShardingRules.cpp",
            "if (⟦order > 0⟧)\n    rule->neutral[0] = 0.0;", "false",
            "Padded rows are -inf for a norm of order infinity, and their magnitude is inf.",
            ("AtenTests", "Interpreter/check-rules", "Transforms/Partition")),
    Mistake("aten-scatter-onto", "dialects/Aten/ShardingRulesIndexing.cpp",
            "if (⟦!ontoZeros || scatter.getReduce() != \"sum\"⟧)", "scatter.getReduce() != \"sum\"",
            "Every rank adds what was there before to what it scatters, and the sum has it once per rank.",
            ("AtenTests", "Interpreter/check-rules", "SpmdInterpreterTests", "Coverage/test_indexing")),
    Mistake("spmd-segment-shape", "dialects/Spmd/UnitOps.cpp",
            "if (⟦tensor.getShape() != segment.getShape() || tensor.getElementType() != unit.getLayout().getDtype()⟧)",
            "tensor.getElementType() != unit.getLayout().getDtype()",
            "A gradient of another shape is packed into a parameter's segment.",
            ("dialects/Spmd",)),
    Mistake("kernel-window-edge", "dialects/Kernel/AttentionMask.cpp",
            "return {std::nullopt, ⟦edge - 1⟧, true};", "edge",
            "A mask of keys before the query lets each query see itself, where the mask itself is left out.",
            ("SpmdKernelTests", "Conversion/AtenToKernel/attention", "Execution/host/kernels")),
    Mistake("plan-lost-reference", "dialects/Plan/PlanOps.cpp",
            "⟦refs.push_back(*ref);⟧", "if (ref != getPreActivation()) refs.push_back(*ref);",
            "What a product keeps before its activation gets bytes of something that is still read.",
            ("dialects/Plan", "Conversion/KernelToPlan/gemm-epilogues", "Python/test_gemm_epilogues")),

    # Python
    Mistake("python-alias", "python-bindings/spmd/livestate.py",
            "if ⟦slot.has_alias()⟧:", "False",
            "A state_dict that is kept over a step has the values of before.",
            ("Python/test_live_state",)),
]
