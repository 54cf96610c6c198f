//===- Passes.td - From kernels to the command plan -----------------------===//
#ifndef SPMD_CONVERSION_KERNELTOPLAN_PASSES_TD
#define SPMD_CONVERSION_KERNELTOPLAN_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertKernelToPlanPass : Pass<"spmd-convert-kernel-to-plan", "::mlir::ModuleOp"> {
  let summary = "values become bytes of the arena, ops become commands";
  let description = [{
    **Definition.** Gives every value of `@step` a place in the arena, turns every op with an effect into a
    command on a stream, and replaces `@step` by a `plan.program @train_step`.

    **Input IR.** One public `func.func @step` of one block with plain tensor types, holding only `kernel` ops
    and these `spmd` ops: collectives (flat, synchronous or as start and wait), `spmd.pack`, `spmd.unpack`,
    `spmd.release`. Every generated kernel has its symbol (`spmd-outline-kernels`), and every argument and
    result its role.

    **Output IR.** A `plan.program` with buffers, bindings and commands, and one private function per kernel
    symbol, which holds the op for code generation. Units and mesh stay.

    **Places.** An unpacked parameter is a range of the gathered buffer. The producer of a packed gradient
    writes directly into the flat buffer, and padding between segments is filled with zeros. A new value of an
    argument overwrites the old one if nothing can read the old one any more. A kernel overwrites an operand
    that is dead after it, if the kernel allows it. A value is all-reduced in place. Otherwise there is a
    `plan.copy`, and a remark with its reason and bytes. A GEMM has a buffer of `gemm-workspace` bytes for its
    library, alive during the GEMM.

    **Values.** A `plan.dataflow`, made only from the ops of `@step`, describes the computation.
    spmd-verify-plan and the loader check the plan against it.

    **Order.** Kernels run on stream `compute`, collectives on `gather`, `reduce` and `scalar`. A collective's
    stream first waits for the last command before it on the compute stream. So the place of the collective in
    the block is the schedule, and the bytes of dead buffers are free for it. Two buffers share bytes only if
    all uses of one happen before all uses of the other, by stream order and waits. With `collective-blocks` the
    streams of collectives have priority over that of kernels, and communicators use at most that many blocks of
    a device. Inputs and hyper-parameters lie side by side after the state, and outputs after them; they share
    bytes with nothing.

    **Why.** Every byte and every order is decided here, so running a step needs no allocation and no decision.

    ```mlir
    // spmd-opt --spmd-convert-kernel-to-plan
    spmd.mesh @mesh ["data" = 2]
    spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
      #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]>
    func.func @step(%shard: tensor<128xf32> {spmd.arg = #spmd.shard<@unit0, "param">})
        -> (tensor<f32> {spmd.result = #spmd.loss<"">}) {
      %flat = spmd.all_gather %shard on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256
          : tensor<128xf32> -> tensor<256xf32>
      %w = spmd.unpack %flat unit @unit0 ["w"] : tensor<256xf32> -> tensor<4x16xf32>
      %loss = kernel.cluster dims [64] parallel 0 ins(%a = %w at (d0) -> (d0) : tensor<4x16xf32>)
          outs(at (d0) -> (0) : tensor<f32>) attributes {symbol = "k0"} {
        %s = kernel.reduce <add> %a over [0] : f32
        kernel.yield %s : f32
      }
      return %loss : tensor<f32>
    }
    // becomes
    spmd.mesh @mesh ["data" = 2]
    spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
      #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]>
    plan.program @train_step ranks 2 state 512 transient 1088 lower_bound 1088 peak {gathered = 1024, io = 64} {
      plan.communicator @gather
      plan.communicator @reduce
      plan.communicator @scalar
      plan.buffer @b0 parameters at 0 bytes 512 state "unit0 param"
      plan.buffer @b1 gathered at 576 bytes 1024 "unit0 gathered"
      plan.buffer @b2 io at 512 bytes 4 "cluster"
      plan.input r @b0[0 : 512] as #spmd.shard<@unit0, "param"> type tensor<128xf32>
      plan.output r @b2[0 : 4] as #spmd.loss<""> type tensor<f32>
      %0 = plan.all_gather(r @b0[0 : 512], w @b1[0 : 1024]) count 128 : f32 unit "unit0" comm @gather on gather
      %1 = plan.wait for %0 on compute
      %2 = plan.kernel @k0(r @b1[0 : 256], w @b2[0 : 4]) parallel 1 grain 1 on compute
    }
    plan.dataflow {
      %0 = plan.source #spmd.shard<@unit0, "param"> type tensor<128xf32> : <512>
      %1 = plan.compute #plan.collective<all_gather f32 counts[128] unit "unit0">(%0) : (!plan.bytes<512>) -> !plan.bytes<1024>
      %2 = plan.part %1 at 0 segment "w" of "unit0" : <1024> -> <256>
      %3 = plan.compute #plan.kernel<@k0>(%2) : (!plan.bytes<256>) -> !plan.bytes<4>
      plan.target %3 is #spmd.loss<""> type tensor<f32> : <4>
    }
    func.func private @k0(%w: tensor<4x16xf32>) -> tensor<f32> {
      %loss = kernel.cluster dims [64] parallel 0 ins(%a = %w at (d0) -> (d0) : tensor<4x16xf32>)
          outs(at (d0) -> (0) : tensor<f32>) attributes {symbol = "k0"} {
        %s = kernel.reduce <add> %a over [0] : f32
        kernel.yield %s : f32
      }
      return %loss : tensor<f32>
    }
    ```
  }];
  let options = [
    Option<"gemmWorkspace", "gemm-workspace", "int64_t", /*default=*/"0",
           "bytes of the workspace that the library of a GEMM has; 0: none">,
    Option<"collectiveBlocks", "collective-blocks", "int64_t", /*default=*/"0",
           "the most thread blocks that a collective may hold on a device, which it is to begin on before what computes; "
           "0: nothing is said of either">
  ];
  let dependentDialects = ["::spmd::plan::PlanDialect"];
}

def OutlineKernelsPass : Pass<"spmd-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "Names the kernel each kernel op runs";
  let description = [{
    Gives every op that code is generated for the attribute `symbol`: k0, k1, ... in program order of the first of its
    kind. Ops that differ only in their operands and locations get the same symbol, so the blocks of a transformer share
    their kernels.

    Input: kernel ops, symbols ignored. Output: the same ops, each generated one with a symbol.

    Why: code is generated once per symbol, and the plan names kernels by it.

    ```mlir
    // spmd-opt --spmd-outline-kernels
    func.func @step(%t: tensor<65x16xf32>, %a: tensor<8xi64>, %b: tensor<8xi64>)
        -> (tensor<8x16xf32>, tensor<8x16xf32>) {
      %0 = kernel.gather_rows %t, %a : (tensor<65x16xf32>, tensor<8xi64>) -> tensor<8x16xf32>
      %1 = kernel.gather_rows %t, %b : (tensor<65x16xf32>, tensor<8xi64>) -> tensor<8x16xf32>
      return %0, %1 : tensor<8x16xf32>, tensor<8x16xf32>
    }
    // becomes
    func.func @step(%t: tensor<65x16xf32>, %a: tensor<8xi64>, %b: tensor<8xi64>)
        -> (tensor<8x16xf32>, tensor<8x16xf32>) {
      %0 = kernel.gather_rows %t, %a {symbol = "k0"} : (tensor<65x16xf32>, tensor<8xi64>) -> tensor<8x16xf32>
      %1 = kernel.gather_rows %t, %b {symbol = "k0"} : (tensor<65x16xf32>, tensor<8xi64>) -> tensor<8x16xf32>
      return %0, %1 : tensor<8x16xf32>, tensor<8x16xf32>
    }
    ```
  }];
  let dependentDialects = ["::spmd::kernel::KernelDialect"];
}

def RepeatIterationsPass : Pass<"spmd-repeat-iterations", "::mlir::ModuleOp"> {
  let summary = "adds the omitted iterations to a step with a few iterations of a loop";
  let description = [{
    **Definition.** If the module has `spmd.iterations`, the step has only the first iterations of a loop over
    microbatches, and `fed` lists the arguments that all of them read. The pass finds ops [begin, end) in the
    block of `@step` in which op i + p is op i, one iteration later. They are equal except for `spmd.segment`,
    and each operand is one of the following: the same value, the next argument that the loop is fed, the result
    of the op p behind the other's, or the result of an op before the range that follows the other's in a chain
    of equal ops. After the first p ops the pass inserts the ops of the missing iterations, and extends each
    chain. Later ops read the last of them. The new fed arguments have the same properties as the existing ones.

    **Input IR.** Kernels with their symbols (`spmd-outline-kernels`). **Output IR.** The same without
    `spmd.iterations`. It is an error if no range repeats twice, or if a value of one iteration is read
    elsewhere.

    **Why.** Passes need not handle 40 equal microbatches. A repeated range does not prove that everything else
    is equal for any number of iterations. So callers compare with the program of one more iteration
    (`include/spmd/Conversion/KernelToPlan/RepeatIterations.h`).

    ```mlir
    // spmd-opt --spmd-repeat-iterations
    module attributes {spmd.iterations = {count = 5 : i64, fed = [["x.0", "x.1", "x.2", "x.3", "x.4"]], kept = 3 : i64,
                                          segments_end = 1 : i64},
                       spmd.phases = ["forward"]} {
      func.func @step(%t: tensor<8x16xf32>,
                      %a: tensor<8xi64> {spmd.arg = #spmd.batch<"x.0", dim = 0>, spmd.index_bound = 8 : i64},
                      %b: tensor<8xi64> {spmd.arg = #spmd.batch<"x.1", dim = 0>, spmd.index_bound = 8 : i64},
                      %c: tensor<8xi64> {spmd.arg = #spmd.batch<"x.2", dim = 0>, spmd.index_bound = 8 : i64},
                      %d: tensor<8xi64> {spmd.arg = #spmd.batch<"x.3", dim = 0>},
                      %e: tensor<8xi64> {spmd.arg = #spmd.batch<"x.4", dim = 0>})
          -> tensor<8x16xf32> {
        %0 = kernel.gather_rows %t, %a {spmd.segment = 0 : i64, symbol = "k0"} : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<8x16xf32>
        %1 = kernel.gather_rows %0, %b {spmd.segment = 0 : i64, symbol = "k0"} : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<8x16xf32>
        %2 = kernel.gather_rows %1, %c {spmd.segment = 0 : i64, symbol = "k0"} : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<8x16xf32>
        return %2 : tensor<8x16xf32>
      }
    }
    // becomes
    module attributes {spmd.phases = ["forward"]} {
      func.func @step(%t: tensor<8x16xf32>,
                      %a: tensor<8xi64> {spmd.arg = #spmd.batch<"x.0", dim = 0>, spmd.index_bound = 8 : i64},
                      %b: tensor<8xi64> {spmd.arg = #spmd.batch<"x.1", dim = 0>, spmd.index_bound = 8 : i64},
                      %c: tensor<8xi64> {spmd.arg = #spmd.batch<"x.2", dim = 0>, spmd.index_bound = 8 : i64},
                      %d: tensor<8xi64> {spmd.arg = #spmd.batch<"x.3", dim = 0>, spmd.index_bound = 8 : i64},
                      %e: tensor<8xi64> {spmd.arg = #spmd.batch<"x.4", dim = 0>, spmd.index_bound = 8 : i64})
          -> tensor<8x16xf32> {
        %0 = kernel.gather_rows %t, %a {spmd.segment = 0 : i64, symbol = "k0"} : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<8x16xf32>
        %1 = kernel.gather_rows %0, %b {spmd.segment = 0 : i64, symbol = "k0"} : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<8x16xf32>
        %2 = kernel.gather_rows %1, %c {spmd.segment = 0 : i64, symbol = "k0"} : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<8x16xf32>
        %3 = kernel.gather_rows %2, %d {spmd.segment = 0 : i64, symbol = "k0"} : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<8x16xf32>
        %4 = kernel.gather_rows %3, %e {spmd.segment = 0 : i64, symbol = "k0"} : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<8x16xf32>
        return %4 : tensor<8x16xf32>
      }
    }
    ```
  }];
}

def FlattenCollectivesPass : Pass<"spmd-flatten-collectives", "::mlir::ModuleOp"> {
  let summary = "turns collectives over rows inside a tensor into contiguous ones and copies";
  let description = [{
    **Definition.** A communicator moves one contiguous chunk per rank. A collective is *flat* if its rows are
    such chunks: no dim before the gathered or scattered one, and as many rows as ranks times chunk. Other
    collectives are rewritten. An all-gather becomes one of the chunks in rank order, followed by a
    `kernel.copy` that puts each rank's rows in place and drops the padding of the last. A reduce-scatter
    becomes a `kernel.copy` that orders rows by rank, with zeros for missing rows, followed by one of whole
    chunks.

    **Input IR.** `@step` in kernel ops and collectives. **Output IR.** The same, with flat collectives only.

    **Why.** The runtime's communicators then support one form of data, and ordering rows is a kernel like any
    other.

    ```mlir
    // spmd-opt --spmd-flatten-collectives
    spmd.mesh @mesh ["data" = 2]
    func.func @step(%x: tensor<4x3xf32>) -> tensor<4x5xf32> {
      %y = spmd.all_gather %x on @mesh ["data"] dim 1 pre 1 total 5 : tensor<4x3xf32> -> tensor<4x5xf32>
      return %y : tensor<4x5xf32>
    }
    // becomes
    spmd.mesh @mesh ["data" = 2]
    func.func @step(%x: tensor<4x3xf32>) -> tensor<4x5xf32> {
      %chunks = spmd.all_gather %x on @mesh ["data"] dim 0 pre 1 total 8 : tensor<4x3xf32> -> tensor<8x3xf32>
      %y = kernel.copy %chunks pieces [
          #kernel.piece<0 [4, 3, 1] (d0, d1, d2) -> (d0 * 3 + d1 + d2) to (d0, d1, d2) -> (d0 * 5 + d1 + d2)>,
          #kernel.piece<0 [4, 2, 1] (d0, d1, d2) -> (d0 * 3 + d1 + d2 + 12) to (d0, d1, d2) -> (d0 * 5 + d1 + d2 + 3)>]
          : (tensor<8x3xf32>) -> tensor<4x5xf32>
      return %y : tensor<4x5xf32>
    }
    ```
  }];
  let dependentDialects = ["::spmd::kernel::KernelDialect"];
}

def DropWaitsPass : Pass<"spmd-drop-waits", "::mlir::ModuleOp"> {
  let summary = "removes waits that order no memory access";
  let description = [{
    **Definition.** Two commands must be ordered if both touch the same bytes of a buffer and one of them
    writes, or if they touch two buffers that share bytes of the arena. A check of integers must come before
    their use. A wait is removed if everything that must be ordered is ordered without it. Waits are tried in
    the order of the plan, each without those already removed. A command that depended on a removed wait depends
    on the command before it on that stream instead.

    **Input IR.** A `plan.program` with offsets that the certificate accepts. **Output IR.** The same with fewer
    `plan.wait`. Offsets stay, and the peak is that of the remaining order. The remaining waits are minimal: the
    certificate rejects the plan without any one of them.

    **Why.** The gates of collectives ([Note: gates]) are inserted everywhere, because only offsets show which
    of them protect the next user of a buffer. A gate that protects nothing delays its stream, and is an event
    on a GPU.

    ```mlir
    // spmd-opt --spmd-drop-waits
    plan.program @train_step ranks 1 state 0 transient 256 lower_bound 192 peak {io = 192} {
      plan.communicator @gather
      plan.buffer @x io at 0 bytes 64 "x"
      plan.buffer @y activations at 64 bytes 64 "y"
      plan.buffer @z activations at 128 bytes 64 "z"
      plan.input r @x[0 : 64] as #spmd.batch<"x", dim = none> type tensor<16xf32>
      %0 = plan.fill(w @y[0 : 64]) value 0 on compute
      %1 = plan.wait for %0 on gather
      %2 = plan.all_gather(r @x[0 : 64], w @z[0 : 64]) count 16 : f32 unit "" comm @gather on gather
      %3 = plan.wait for %2 on compute
      %4 = plan.copy(r @z[0 : 64], w @y[0 : 64]) on compute
    }
    // becomes
    plan.program @train_step ranks 1 state 0 transient 256 lower_bound 192 peak {activations = 128, io = 64} {
      plan.communicator @gather
      plan.buffer @x io at 0 bytes 64 "x"
      plan.buffer @y activations at 64 bytes 64 "y"
      plan.buffer @z activations at 128 bytes 64 "z"
      plan.input r @x[0 : 64] as #spmd.batch<"x", dim = none> type tensor<16xf32>
      %0 = plan.fill(w @y[0 : 64]) value 0 on compute
      %1 = plan.all_gather(r @x[0 : 64], w @z[0 : 64]) count 16 : f32 unit "" comm @gather on gather
      %2 = plan.wait for %1 on compute
      %3 = plan.copy(r @z[0 : 64], w @y[0 : 64]) on compute
    }
    ```
  }];
}

def MarkIterationPass : Pass<"spmd-mark-iteration", "::mlir::ModuleOp"> {
  let summary = "finds the iteration that stands for the omitted iterations of a plan";
  let description = [{
    **Definition.** `spmd.iterations` of the module says that a loop has more iterations than the plan. The pass
    finds the range [begin, end) of commands of the `plan.program` in which command i + p is command i, one
    iteration later. They are equal except for buffers and waits, each of which is the same, the next that the
    loop is fed, or the one of the previous iteration, at the same bytes. The last p commands become the
    program's `iteration`; likewise the ops of the `plan.dataflow`. Later commands may read buffers of the last
    two iterations.

    **Input IR.** A `plan.program` with offsets, and its `plan.dataflow`. Without `spmd.iterations` nothing
    changes. **Output IR.** The same with `iteration` of both. It is an error if there is no such range, or if
    iterations have other bytes.

    **Why.** A plan of 40 equal microbatches is planned, written and read in the time of a few.

    ```mlir
    // spmd-opt --spmd-mark-iteration
    module attributes {spmd.iterations = {count = 5 : i64, fed = [["x.0", "x.1", "x.2", "x.3", "x.4"]], kept = 3 : i64,
                                          segments_end = 1 : i64}} {
      plan.program @train_step ranks 1 state 0 transient 384 lower_bound 384 peak {io = 384} {
        plan.buffer @x0 io at 0 bytes 64 "x.0"
        plan.buffer @x1 io at 64 bytes 64 "x.1"
        plan.buffer @x2 io at 128 bytes 64 "x.2"
        plan.buffer @x3 io at 192 bytes 64 "x.3"
        plan.buffer @x4 io at 256 bytes 64 "x.4"
        plan.buffer @y io at 320 bytes 64 "y"
        plan.input r @x0[0 : 64] as #spmd.batch<"x.0", dim = none> type tensor<16xf32>
        plan.input r @x1[0 : 64] as #spmd.batch<"x.1", dim = none> type tensor<16xf32>
        plan.input r @x2[0 : 64] as #spmd.batch<"x.2", dim = none> type tensor<16xf32>
        plan.input r @x3[0 : 64] as #spmd.batch<"x.3", dim = none> type tensor<16xf32>
        plan.input r @x4[0 : 64] as #spmd.batch<"x.4", dim = none> type tensor<16xf32>
        plan.output r @y[0 : 64] as #spmd.loss<""> type tensor<16xf32>
        %0 = plan.copy(r @x0[0 : 64], w @y[0 : 64]) on compute
        %1 = plan.copy(r @x1[0 : 64], w @y[0 : 64]) on compute
        %2 = plan.copy(r @x2[0 : 64], w @y[0 : 64]) on compute
      }
    }
    // becomes
    module attributes {spmd.iterations = {count = 5 : i64, fed = [["x.0", "x.1", "x.2", "x.3", "x.4"]], kept = 3 : i64,
                                          segments_end = 1 : i64}} {
      plan.program @train_step ranks 1 state 0 transient 384 lower_bound 384 peak {io = 384} attributes {iteration = array<i64: 2, 3>} {
        plan.buffer @x0 io at 0 bytes 64 "x.0"
        plan.buffer @x1 io at 64 bytes 64 "x.1"
        plan.buffer @x2 io at 128 bytes 64 "x.2"
        plan.buffer @x3 io at 192 bytes 64 "x.3"
        plan.buffer @x4 io at 256 bytes 64 "x.4"
        plan.buffer @y io at 320 bytes 64 "y"
        plan.input r @x0[0 : 64] as #spmd.batch<"x.0", dim = none> type tensor<16xf32>
        plan.input r @x1[0 : 64] as #spmd.batch<"x.1", dim = none> type tensor<16xf32>
        plan.input r @x2[0 : 64] as #spmd.batch<"x.2", dim = none> type tensor<16xf32>
        plan.input r @x3[0 : 64] as #spmd.batch<"x.3", dim = none> type tensor<16xf32>
        plan.input r @x4[0 : 64] as #spmd.batch<"x.4", dim = none> type tensor<16xf32>
        plan.output r @y[0 : 64] as #spmd.loss<""> type tensor<16xf32>
        %0 = plan.copy(r @x0[0 : 64], w @y[0 : 64]) on compute
        %1 = plan.copy(r @x1[0 : 64], w @y[0 : 64]) on compute
        %2 = plan.copy(r @x2[0 : 64], w @y[0 : 64]) on compute
      }
    }
    ```
  }];
}

def VerifyPlanPass : Pass<"spmd-verify-plan", "::mlir::ModuleOp"> {
  let summary = "runs the certificate on the plan, as the loader does";
  let description = [{
    **Definition.** Writes the plan in the artifact's format, reads it with the runtime's own reader, and runs
    the runtime's certificate on it. The certificate requires the same sequence of collectives on every rank,
    waits without a cycle, no overlap of live bytes, no read before a write, exactly one reduction of every
    gradient, and the computation of the `plan.dataflow`. An error is reported at the command, with module path
    and Python line. With `read-back=false` the plan is not written and read, for callers that read the written
    artifact.

    **Input IR.** A `plan.program`. **Output IR.** The input, unchanged.

    **Why.** The loader rejects an artifact that fails these checks; the compiler must never produce such a
    plan.

    ```mlir
    // spmd-opt --spmd-verify-plan
    plan.program @train_step ranks 1 state 0 transient 128 lower_bound 128 peak {} {
      plan.buffer @x io at 0 bytes 64 "x"
      plan.buffer @y activations at 0 bytes 64 "y"  // the bytes of @x
      plan.input r @x[0 : 64] as #spmd.batch<"x", dim = none> type tensor<16xf32>
      %0 = plan.fill(w @y[0 : 64]) value 0 on compute
      %1 = plan.copy(r @x[0 : 64], w @y[0 : 64]) on compute
    }
    // fails with: certificate rule 2: command 1 (copy): operands overlap
    ```
  }];
  let options = [Option<"readBack", "read-back", "bool", /*default=*/"true",
                        "Check what the runtime reads of the plan's text, not the plan itself">];
}

#endif // SPMD_CONVERSION_KERNELTOPLAN_PASSES_TD
