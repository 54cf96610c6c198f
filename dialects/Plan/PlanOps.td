//===- PlanOps.td - program, buffers, bindings, commands ------------------===//
#ifndef SPMD_DIALECTS_PLAN_PLANOPS_TD
#define SPMD_DIALECTS_PLAN_PLANOPS_TD

include "dialects/Plan/PlanAttention.td"
include "dialects/Plan/PlanInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"

class Plan_Op<string mnemonic, list<Trait> traits = []> : Op<Plan_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Program, buffers, bindings
//===----------------------------------------------------------------------===//

def Plan_ProgramOp : Plan_Op<"program", [Symbol, SymbolTable, IsolatedFromAbove, NoTerminator, SingleBlock]> {
  let summary = "one program of the artifact: buffers, bindings, commands";
  let description = [{
    The arena of a rank is `[0, state_bytes)`, which persists between steps, and `[state_bytes, state_bytes +
    transient_bytes)`, which is dead between steps but for the program's inputs and outputs. `lower_bound` is the number
    of transient bytes that no placement of these buffers can go below, and `peak` says which classes of transient bytes
    are alive where most are.

    Constraints:
    1. every ref names a buffer of the program and lies inside it for every rank;
    2. every collective's communicator is one of the program's;
    3. a state buffer lies in the state part of the arena, every other one in the transient part;
    4. a wait names a command of another stream;
    5. a stream has one priority.

    With `iteration` commands [begin, end), by position, stand for those of the iterations of a loop that are missing
    behind them (`spmd.iterations` of the module says how many, and what they are fed). As many commands before them are
    the iteration before.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$ranks, I64Attr:$state_bytes,
                       I64Attr:$transient_bytes, I64Attr:$lower_bound, DictionaryAttr:$peak,
                       OptionalAttr<ConfinedAttr<DenseI64ArrayAttr, [DenseArrayCount<2>]>>:$iteration);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `ranks` $ranks `state` $state_bytes `transient` $transient_bytes `lower_bound` $lower_bound `peak` $peak
    attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The buffer called `name`, or null.
    ::spmd::plan::BufferOp lookupBuffer(::llvm::StringRef name);
  }];
}

def Plan_CommunicatorOp : Plan_Op<"communicator", [Symbol, HasParent<"ProgramOp">]> {
  let summary = "ranks that meet in collectives";
  let description = [{
    All ranks, or with `axes` those that differ only in their coordinates on these axes of the mesh. Collectives of one
    communicator are in the same order on all of its ranks. On a GPU one holds at most `max_blocks` thread blocks, if
    that is said.
    ```mlir
    plan.communicator @gather max_blocks 32
    plan.communicator @reduce.replicate axes ["replicate"]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<StrArrayAttr>:$axes,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$max_blocks);
  let assemblyFormat = "$sym_name (`axes` $axes^)? (`max_blocks` $max_blocks^)? attr-dict";
  let hasVerifier = 1;
}

def Plan_StreamOp : Plan_Op<"stream", [HasParent<"ProgramOp">]> {
  let summary = "a stream whose commands go before those of others";
  let description = [{
    What a device has room for is given to the stream of the greatest `priority` first. Streams of which nothing is said
    have 0.
    ```mlir
    plan.stream gather priority 1
    ```
  }];
  let arguments = (ins Plan_StreamAttr:$stream, ConfinedAttr<I64Attr, [IntPositive]>:$priority);
  let assemblyFormat = "$stream `priority` $priority attr-dict";
}

def Plan_BufferOp : Plan_Op<"buffer", [Symbol, HasParent<"ProgramOp">]> {
  let summary = "a range of the arena";
  let description = [{
    Bytes `[offset, offset + bytes)` of the arena. Its location is the op whose value lives here first; `label` is what
    a report calls it. `align` is what `offset` must be a multiple of, where that is more than any buffer has.
    ```mlir
    plan.buffer @b3 gathered at 4096 bytes 65536 "unit0 gathered"
    plan.buffer @b4 workspace at 69632 bytes 33554432 align 256 "fc1 addmm workspace"
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_BufferClassAttr:$buffer_class, I64Attr:$offset, I64Attr:$bytes,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$alignment, UnitAttr:$state, StrAttr:$label);
  let assemblyFormat = [{
    $sym_name $buffer_class `at` $offset `bytes` $bytes (`align` $alignment^)? (`state` $state^)? $label attr-dict
  }];
  let hasVerifier = 1;
}

def Plan_InputOp : Plan_Op<"input", [HasParent<"ProgramOp">]> {
  let summary = "binds an argument of the step to bytes of the arena";
  let description = [{
    `role` is the argument's role attribute (`#spmd.shard`, `#spmd.batch`, …), `type` its local type. `layout` is the
    `#spmd.sharding` of a batch input: how a rank's rows are cut from the global batch. `index_bound` says that the
    values are row numbers below it, apart from `ignore_index`.
  }];
  let arguments = (ins Plan_RefAttr:$ref, AnyAttr:$role, TypeAttr:$type, OptionalAttr<AnyAttr>:$layout,
                       OptionalAttr<I64Attr>:$index_bound, OptionalAttr<I64Attr>:$ignore_index);
  let assemblyFormat = "custom<Ref>($ref) `as` $role `type` $type (`layout` $layout^)? attr-dict";
}

def Plan_OutputOp : Plan_Op<"output", [HasParent<"ProgramOp">]> {
  let summary = "says where a result of the step lies after the last command";
  let description = [{
    As `plan.input`; a result that updates an argument has no output: it lies where the argument does.
  }];
  let arguments = (ins Plan_RefAttr:$ref, AnyAttr:$role, TypeAttr:$type, OptionalAttr<AnyAttr>:$layout);
  let assemblyFormat = "custom<Ref>($ref) `as` $role `type` $type (`layout` $layout^)? attr-dict";
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

class Plan_Command<string mnemonic, list<Trait> traits = []>
    : Plan_Op<mnemonic, [HasParent<"ProgramOp">, Plan_CommandOpInterface] # traits> {
  let results = (outs Plan_EventType:$event);
  let extraClassDeclaration = "::llvm::SmallVector<::spmd::plan::RefAttr> getRefs();";
}

/// A collective: the ranks of the communicator meet here, all with the same operands. It has operands and attributes of
/// its own, `own`, and is built by `build` from what all collectives have.
class Plan_Collective<string mnemonic, dag own, string ownText, string build, string members>
    : Plan_Command<mnemonic, [Plan_CollectiveOpInterface]> {
  let arguments = !con(own, (ins TypeAttr:$dtype, StrAttr:$unit, FlatSymbolRefAttr:$comm, Plan_StreamAttr:$stream));
  let assemblyFormat = ownText # " `:` $dtype `unit` $unit `comm` $comm `on` $stream attr-dict";
  let builders = [OpBuilder<(ins "::llvm::ArrayRef<::spmd::plan::RefAttr>":$refs, "::llvm::ArrayRef<int64_t>":$counts,
                                 "::llvm::ArrayRef<::spmd::plan::ReductionKind>":$kinds, "::mlir::Type":$dtype,
                                 "::llvm::StringRef":$unit, "::llvm::StringRef":$comm,
                                 "::spmd::plan::Stream":$stream), [{
    build($_builder, $_state, EventType::get($_builder.getContext()), }] # build # [{, dtype, unit, comm, stream);
  }]>];
  let extraClassDeclaration = [{
    ::spmd::plan::CollectiveKind getCollectiveKind();
    ::mlir::FlatSymbolRefAttr getCommunicator() { return getCommAttr(); }
  }] # members;
}

/// One of one buffer that is sent and one that receives.
class Plan_SendRecv<string mnemonic, bit combines> : Plan_Collective<mnemonic,
    !con((ins Plan_RefAttr:$send, Plan_RefAttr:$recv, I64Attr:$count),
         !if(combines, (ins Plan_ReductionKindAttr:$kind), (ins))),
    !if(combines, "$kind ", "") # "`(` custom<Ref>($send) `,` custom<Ref>($recv) `)` `count` $count",
    "refs[0], refs[1], counts[0]" # !if(combines, ", kinds[0]", ""), [{
    ::llvm::SmallVector<::spmd::plan::RefAttr> getRefs() { return {getSend(), getRecv()}; }
    ::llvm::SmallVector<int64_t> getElementCounts() { return {static_cast<int64_t>(getCount())}; }
    ::llvm::SmallVector<::spmd::plan::ReductionKind> getReductions() { return {}] #
      !if(combines, "getKind()", "") # [{}; }
  }]>;

def Plan_KernelOp : Plan_Command<"kernel", [Plan_LaunchOpInterface]> {
  let summary = "launches a generated kernel";
  let description = [{
    Calls `kernel(args, coords, begin, end)` until the iterations `[0, parallel)` are done, in pieces of at least
    `grain`.
    ```mlir
    %2 = plan.kernel @k12(r @b0[0 : 512], w @b3[128 : 256]) parallel 512 grain 8 on compute
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Plan_RefArrayAttr:$args, I64Attr:$parallel, I64Attr:$grain,
                       Plan_StreamAttr:$stream);
  let assemblyFormat = [{
    $kernel `(` custom<RefList>($args) `)` `parallel` $parallel `grain` $grain `on` $stream attr-dict
  }];
}

/// An attention or its backward: its kernel, the operands of this direction, and those that both have.
class Plan_AttentionLike<string mnemonic, dag first, dag last, string firstText, string lastText>
    : Plan_Command<mnemonic, [Plan_LaunchOpInterface]> {
  let arguments = !con((ins FlatSymbolRefAttr:$kernel, Plan_AttentionShapeAttr:$shape), first,
                       (ins Plan_RefAttr:$q, Plan_RefAttr:$k, Plan_RefAttr:$v,
                            OptionalAttr<Plan_RefArrayAttr>:$mask_inputs, Plan_RefAttr:$out, Plan_RefAttr:$lse),
                       last, (ins I64Attr:$parallel, I64Attr:$grain, OptionalAttr<StrAttr>:$library,
                                  OptionalAttr<StrAttr>:$library_plan, Plan_StreamAttr:$stream));
  let assemblyFormat = [{
    $kernel $shape }] # firstText # [{
    `q` `(` custom<Ref>($q) `)` `k` `(` custom<Ref>($k) `)` `v` `(` custom<Ref>($v) `)`
    (`mask` `(` custom<RefList>($mask_inputs)^ `)`)? `out` `(` custom<Ref>($out) `)`
    `lse` `(` custom<Ref>($lse) `)` }] # lastText # [{
    `parallel` $parallel `grain` $grain (`library` $library^ `plan` $library_plan)? `on` $stream attr-dict
  }];
  let hasVerifier = 1;
}

def Plan_AttentionOp : Plan_AttentionLike<"attention", (ins), (ins), "", ""> {
  let summary = "launches the kernel that computes an attention";
  let description = [{
    As plan.kernel, whose arguments are q, k, v, the mask's, out and lse, and says what is computed: `out =
    softmax(scale * q k^T + mask) v` and lse, contiguous [batch, heads, qLen] in f32.

    `library` names a library, and `plan` how that one does it instead of the kernel; both are kept as they are. The
    runtime refuses them by name as long as nobody makes them.

    Constraints: (A1) the shape has no views of gradients; (A2) operands are read and results written; (A3) what a mask
    takes is there for a mask; (A4) a library has a plan.
    ```mlir
    %2 = plan.attention @k12 <f32, batch = 2, heads = 3, kvHeads = 3, qLen = 8, kvLen = 8, headDim = 4, vDim = 4,
        scale = 5.000000e-01 : f64, high = 0, q = <offset = 0, batch = 96, head = 32, row = 4>, …>
        q(r @b0[0 : 768]) k(r @b1[0 : 768]) v(r @b2[0 : 768]) out(w @b3[0 : 768]) lse(w @b4[0 : 192])
        parallel 6 grain 1 on compute
    ```
  }];
}

def Plan_AttentionBackwardOp : Plan_AttentionLike<"attention_backward", (ins Plan_RefAttr:$dout),
    (ins Plan_RefArrayAttr:$gradients, OptionalAttr<Plan_RefAttr>:$mask_gradient),
    "`dout` `(` custom<Ref>($dout) `)`", [{`gradients` `(` custom<RefList>($gradients) `)`
    (`mask_gradient` `(` custom<Ref>($mask_gradient)^ `)`)?}]> {
  let summary = "launches the kernel that computes the gradients of an attention";
  let description = [{
    As plan.attention, of the gradient of out, which is read as out and lse are. There are gradients of q, k and v, or
    one range that holds them at their views; `mask_gradient` is that of an added mask, f32.

    Constraints: as plan.attention, but (A1) the shape has views of gradients; (A5) one or three gradients; (A6) only an
    added mask has a gradient.
  }];
}

def Plan_GemmOp : Plan_Command<"gemm"> {
  let summary = "C = activation(A * B + bias + beta * C + residual) on row-major matrices, `batch` times";
  let description = [{
    A is m × k (k × m when `trans_a`), B is k × n (n × k when `trans_b`), C is m × n. Leading dimensions and the strides
    between the matrices of a batch are in elements. `beta` is 0 or 1.

    The rest is the epilogue, each part of it optional: `bias` has an element per column; `residual` lies as C does,
    elsewhere (where it lies in C's place, beta is 1); `activation` is relu, gelu or gelu_tanh, and what it is applied
    to goes to `pre_activation`, which lies as C does. Where it is gelu_tanh_backward, C = A * B * gelu_tanh'(H) instead,
    and `pre_activation` is H, which is read. `bias_gradient_of` goes to `bias_gradient`: of a (b) the sum over k of each
    row of op(A) (column of op(B)), of one GEMM without bias and activation; of c that of each column of C, of one GEMM
    with gelu_tanh_backward.

    `workspace` is what a library may use while it runs; what is there afterwards is nothing.
    ```mlir
    %2 = plan.gemm(r @b0[0 : 128], r @b1[0 : 96], w @b2[0 : 192]) m 8 n 6 k 4 ld(4, 4, 6) trans_b
        beta 0.000000e+00 batch 1 strides(0, 0, 0) : f32 bias r @b3[0 : 24] residual r @b4[0 : 192] on compute
    ```
  }];
  let arguments = (ins Plan_RefAttr:$a, Plan_RefAttr:$b, Plan_RefAttr:$c, I64Attr:$m, I64Attr:$n, I64Attr:$k,
                       I64Attr:$lda, I64Attr:$ldb, I64Attr:$ldc, UnitAttr:$trans_a, UnitAttr:$trans_b, F64Attr:$beta,
                       I64Attr:$batch, I64Attr:$stride_a, I64Attr:$stride_b, I64Attr:$stride_c, TypeAttr:$dtype,
                       OptionalAttr<Plan_RefAttr>:$bias, OptionalAttr<Plan_RefAttr>:$residual,
                       OptionalAttr<Plan_ActivationAttr>:$activation, OptionalAttr<Plan_RefAttr>:$pre_activation,
                       OptionalAttr<Plan_GemmOperandAttr>:$bias_gradient_of, OptionalAttr<Plan_RefAttr>:$bias_gradient,
                       OptionalAttr<Plan_RefAttr>:$workspace, Plan_StreamAttr:$stream);
  let assemblyFormat = [{
    `(` custom<Ref>($a) `,` custom<Ref>($b) `,` custom<Ref>($c) `)` `m` $m `n` $n `k` $k
    `ld` `(` $lda `,` $ldb `,` $ldc `)` (`trans_a` $trans_a^)? (`trans_b` $trans_b^)? `beta` $beta
    `batch` $batch `strides` `(` $stride_a `,` $stride_b `,` $stride_c `)` `:` $dtype
    custom<Epilogue>($bias, $residual, $activation, $pre_activation)
    (`bias_gradient_of` $bias_gradient_of^ custom<Ref>($bias_gradient))? (`workspace` custom<Ref>($workspace)^)?
    `on` $stream attr-dict
  }];
  let hasVerifier = 1;
}

def Plan_AllGatherOp : Plan_SendRecv<"all_gather", false> {
  let summary = "every rank gets the concatenation of what the ranks send, in rank order";
  let description = [{
    `count` elements are sent by each rank. A send range inside the receive buffer is the rank's own part of it.
  }];
}

def Plan_ReduceScatterOp : Plan_SendRecv<"reduce_scatter", true> {
  let summary = "rank r gets part r of the reduction of what the ranks send";
  let description = [{ `count` elements are received by each rank. Reduced in the order of the ranks. }];
}

def Plan_AllReduceOp : Plan_Collective<"all_reduce",
    (ins Plan_RefArrayAttr:$buffers, DenseI64ArrayAttr:$counts, Plan_ReductionKindArrayAttr:$kinds),
    "custom<Kinds>($kinds) `(` custom<RefList>($buffers) `)` `counts` $counts",
    "getRefArray($_builder, refs), counts, getKindArray($_builder, kinds)", [{
    ::llvm::SmallVector<::spmd::plan::RefAttr> getRefs();
    ::llvm::SmallVector<int64_t> getElementCounts() { return ::llvm::to_vector(getCounts()); }
    ::llvm::SmallVector<::spmd::plan::ReductionKind> getReductions();
    static ::mlir::ArrayAttr getRefArray(::mlir::OpBuilder &builder, ::llvm::ArrayRef<::spmd::plan::RefAttr> refs);
    static ::mlir::ArrayAttr getKindArray(::mlir::OpBuilder &builder,
                                          ::llvm::ArrayRef<::spmd::plan::ReductionKind> kinds);
  }]> {
  let summary = "every rank gets the reduction of every buffer, in place, as one message";
  let hasVerifier = 1;
}

def Plan_WaitOp : Plan_Command<"wait"> {
  let summary = "holds a stream until a command of another stream has completed";
  let arguments = (ins Plan_EventType:$awaited, Plan_StreamAttr:$stream);
  let assemblyFormat = "`for` $awaited `on` $stream attr-dict";
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::spmd::plan::RefAttr> getRefs() { return {}; }
    ::mlir::Value getAwaitedEvent() { return getAwaited(); }
  }];
}

def Plan_CopyOp : Plan_Command<"copy"> {
  let summary = "copies bytes";
  let arguments = (ins Plan_RefAttr:$src, Plan_RefAttr:$dst, Plan_StreamAttr:$stream);
  let assemblyFormat = "`(` custom<Ref>($src) `,` custom<Ref>($dst) `)` `on` $stream attr-dict";
  let hasVerifier = 1;
}

def Plan_CheckIndexOp : Plan_Command<"check_index"> {
  let summary = "ends the step with an error when a row number is out of range";
  let description = [{
    Every one of the `count` integers must lie in `[low, high)` or be `ignore_index`; `use` is the op that takes them.
    ```mlir
    %4 = plan.check_index(r @b2[0 : 512]) count 64 : i64 in 0 to 65 for "embedding" on compute
    ```
  }];
  let arguments = (ins Plan_RefAttr:$ids, I64Attr:$count, TypeAttr:$dtype, I64Attr:$low, I64Attr:$high,
                       OptionalAttr<I64Attr>:$ignore_index, StrAttr:$use, Plan_StreamAttr:$stream);
  let assemblyFormat = [{
    `(` custom<Ref>($ids) `)` `count` $count `:` $dtype `in` $low `to` $high (`or` $ignore_index^)? `for` $use
    `on` $stream attr-dict
  }];
}

def Plan_FillOp : Plan_Command<"fill"> {
  let summary = "sets every byte of a range to `value`";
  let arguments = (ins Plan_RefAttr:$dst, ConfinedAttr<I64Attr, [IntMinValue<0>, IntMaxValue<255>]>:$value,
                   Plan_StreamAttr:$stream);
  let assemblyFormat = "`(` custom<Ref>($dst) `)` `value` $value `on` $stream attr-dict";
}

#endif // SPMD_DIALECTS_PLAN_PLANOPS_TD
