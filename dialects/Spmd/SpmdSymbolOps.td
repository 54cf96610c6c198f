//===- SpmdSymbolOps.td - mesh, module tree, shard units -----*- tablegen -*-===//

#ifndef SPMD_SYMBOL_OPS_TD
#define SPMD_SYMBOL_OPS_TD

include "dialects/Spmd/SpmdAttrs.td"
include "dialects/Spmd/SpmdInterfaces.td"
include "dialects/Spmd/SpmdTypes.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Spmd_Op<string mnemonic, list<Trait> traits = []>
    : Op<Spmd_Dialect, mnemonic, traits>;

def Spmd_MeshOp : Spmd_Op<"mesh", [Symbol]> {
  let summary = "named axes of ranks";
  let description = [{
    `spmd.mesh @mesh ["data" = 4]`: 4 ranks. The rank number is row-major in the axes.
    Of two axes, `["replicate" = 2, "shard" = 4]`, units are cut along the second and
    the same along the first; the batch is cut over all ranks. Where what forward has
    gathered is kept within groups, `["outer" = 2, "inner" = 2]` stand in place of the
    axis along which units are cut, also behind `"replicate"`.

    `spmd.mesh @mesh ["shard" = 4, "tensor" = 2] tensor "tensor"`: the last axis is one
    of another kind. Along it ranks have the same rows of the batch, and parts of those
    parameters that are placed so (`spmd-partition-tensor`). The other axes are the data
    axes, and alone what is said above.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$axis_names,
                       DenseI64ArrayAttr:$axis_sizes, OptionalAttr<StrAttr>:$tensor_axis);
  let assemblyFormat = [{
    $sym_name custom<MeshAxes>($axis_names, $axis_sizes) (`tensor` $tensor_axis^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Product of the sizes of `axes`.
    int64_t getNumRanks(::mlir::ArrayAttr axes);
    /// Product of the sizes of all axes.
    int64_t getNumRanks();
    /// Position of the axis, -1 when there is none of this name.
    int64_t getAxisIndex(::llvm::StringRef axis);
    /// The names of the axes over which the batch is cut: all but the tensor axis.
    ::mlir::ArrayAttr getDataAxes();
    /// Product of their sizes.
    int64_t getNumDataRanks();
    /// The tensor axis alone; null where the mesh has none.
    ::mlir::ArrayAttr getTensorAxes();
  }];
}

def Spmd_ModuleTreeOp : Spmd_Op<"module_tree",
    [Symbol, NoTerminator, SingleBlock, HasOnlyGraphRegion]> {
  let summary = "the model's modules, in preorder";
  let description = [{
    What wrap policies read. Each entry of the region is a `spmd.module`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def Spmd_TreeModuleOp : Spmd_Op<"module", [HasParent<"ModuleTreeOp">]> {
  let summary = "one module: class, own parameters and buffers, children";
  let description = [{
    All names are fully qualified; parameters of children are not repeated. A tied
    parameter is listed by each owner under the name it has there.

    ```mlir
    spmd.module "h.0" class "train.Block" bases ["torch.nn.modules.module.Module"]
        params [] buffers [] children ["h.0.attn", "h.0.mlp"]
    ```
  }];
  let arguments = (ins StrAttr:$path, StrAttr:$class_name, StrArrayAttr:$bases,
                       StrArrayAttr:$params, StrArrayAttr:$buffers,
                       StrArrayAttr:$children);
  let assemblyFormat = [{
    $path `class` $class_name `bases` $bases `params` $params `buffers` $buffers
    `children` $children attr-dict
  }];
}

def Spmd_ShardUnitOp : Spmd_Op<"shard_unit",
    [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "parameters that live in one flat buffer and are gathered together";
  let description = [{
    `modules` are the modules whose parameters the unit has. Under `fully_shard` each
    rank of `axes` owns one chunk of the flat buffer; under `shard_optimizer` it keeps
    all parameters, and a chunk of gradients and optimizer state; under `replicate`
    each has it all. With `reshard_after_forward` the gathered buffer is freed between forward
    and backward and gathered again; `reshard_group` keeps it over a group of this
    many ranks instead. `prefetch` is how many units ahead it is gathered, if not as
    the pass is told. `precision` has the dtypes of mixed precision: `param` (gathered
    and computed with), `reduce` (gradients), `grad` (which the optimizer gets them in),
    `buffer`, `output`, `master` (of which parameters are roundings). The parameters of an `ignored` unit were to be left
    alone: they are whole on every rank.

    ```mlir
    spmd.shard_unit @unit0 modules ["h.0"] mesh @mesh axes ["data"]
        fully_shard reshard_after_forward layout #spmd.flat<f32, padded = 1024, [
          #spmd.segment<"h.0.fc.weight", shape = [4, 8], group = 0, offset = 0,
                        numel = 32, trainable = true>]>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$modules,
                       FlatSymbolRefAttr:$mesh, StrArrayAttr:$axes,
                       Spmd_UnitModeAttr:$mode, UnitAttr:$reshard_after_forward,
                       Spmd_FlatAttr:$layout,
                       OptionalAttr<I64Attr>:$reshard_group,
                       OptionalAttr<I64Attr>:$prefetch,
                       OptionalAttr<DictionaryAttr>:$precision,
                       UnitAttr:$ignored);
  let assemblyFormat = [{
    $sym_name `modules` $modules `mesh` $mesh `axes` $axes custom<Mode>($mode)
    (`reshard_after_forward` $reshard_after_forward^)? `layout` qualified($layout) attr-dict
  }];
  let extraClassDeclaration = [{
    /// Ranks of the unit's axes (1 when the mesh is missing).
    int64_t getNumRanks();
    /// Elements of the flat buffer a rank keeps: padded / ranks, or padded.
    int64_t getChunk();
    /// Type of what a rank keeps, without encoding.
    ::mlir::RankedTensorType getChunkType();
    /// Type of the whole flat buffer, without encoding.
    ::mlir::RankedTensorType getFlatType();
    /// True when each rank owns a chunk smaller than the buffer.
    bool isSharded();
    /// True when each rank keeps all parameters of a sharded unit, and a chunk of the rest.
    bool hasWholeParameters();
  }];
}

#endif // SPMD_SYMBOL_OPS_TD
