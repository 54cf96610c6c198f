//===- SpmdInterfaces.td - what every collective answers -----*- tablegen -*-===//

#ifndef SPMD_INTERFACES_TD
#define SPMD_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Spmd_CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::spmd";
  let description = [{
    An op in which all ranks of a group take part, synchronous or as a start.
    Implemented by `all_gather`, `reduce_scatter`, `all_reduce` and their starts.
  }];
  let methods = [
    InterfaceMethod<"the mesh", "::mlir::FlatSymbolRefAttr", "getMeshAttr">,
    InterfaceMethod<"names of the mesh axes the group spans",
                    "::mlir::ArrayAttr", "getAxesAttr">,
    InterfaceMethod<"the unit whose flat buffer is communicated, null if none",
                    "::mlir::FlatSymbolRefAttr", "getUnitAttr">,
    InterfaceMethod<"all_gather, reduce_scatter or all_reduce",
                    "::spmd::CollectiveKind", "getCollectiveKind">,
    InterfaceMethod<"the stream that it runs on: that of a start, or where one would be",
                    "::spmd::Stream", "getStreamKind">,
    InterfaceMethod<"types of the values received",
                    "::llvm::SmallVector<::mlir::Type>", "getReceivedTypes">,
    InterfaceMethod<"bytes a rank hands in, padding of the send buffer included",
                    "int64_t", "getSentBytes", (ins), "", [{
      int64_t bytes = 0;
      for (::mlir::Type type : $_op->getOperandTypes()) {
        auto tensor = ::llvm::cast<::mlir::RankedTensorType>(type);
        int64_t bits = tensor.getElementTypeBitWidth();
        bytes += tensor.getNumElements() * ((bits + 7) / 8);
      }
      return bytes;
    }]>,
  ];
  let extraSharedClassDeclaration = [{
    ::llvm::StringRef getCollectiveName() { return ::spmd::stringifyCollectiveKind($_op.getCollectiveKind()); }
  }];
}

#endif // SPMD_INTERFACES_TD
