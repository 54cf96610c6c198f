//===- SpmdInterfaces.td - what collectives answer -----*- tablegen -*-===//

#ifndef SPMD_INTERFACES_TD
#define SPMD_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Spmd_CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::spmd";
  let description = [{
    An op in which all ranks of a group take part, synchronous or as a start. What follows from its kind is in
    `CollectiveKind.h`: passes ask for that, and for the op only where one collective means something of its own.
  }];
  let methods = [
    InterfaceMethod<"the mesh", "::mlir::FlatSymbolRefAttr", "getMeshAttr">,
    InterfaceMethod<"names of the mesh axes the group spans",
                    "::mlir::ArrayAttr", "getAxesAttr">,
    InterfaceMethod<"the unit whose flat buffer is communicated, null if none",
                    "::mlir::FlatSymbolRefAttr", "getUnitAttr">,
    InterfaceMethod<"which collective it is",
                    "::spmd::CollectiveKind", "getCollectiveKind">,
    InterfaceMethod<"how values are combined, one for each; none where they are only moved",
                    "::llvm::SmallVector<::spmd::ReduceKind>", "getReduceKinds">,
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
    ::llvm::StringRef getCollectiveName() { return ::spmd::runtime::nameOf($_op.getCollectiveKind()); }
    /// It gives a handle, and spmd.wait what is received.
    bool isStart() {
      return $_op->getNumResults() == 1 && ::llvm::isa<::spmd::HandleType>($_op->getResult(0).getType());
    }
  }];
}

def Spmd_RowCollectiveOpInterface : OpInterface<"RowCollectiveOpInterface"> {
  let cppNamespace = "::spmd";
  let description = [{
    A collective of one value whose dimension `dim` is [pre][rows]. Of the whole value the rows are cut into a chunk per
    rank; whether what is sent and what is received is the whole or a chunk follows from the kind.
  }];
  let methods = [
    InterfaceMethod<"the dimension", "uint64_t", "getDim">,
    InterfaceMethod<"how often the rows are there", "uint64_t", "getPre">,
    InterfaceMethod<"the rows of what is received", "int64_t", "getRows">,
    InterfaceMethod<"the dimension", "void", "setDim", (ins "uint64_t":$dim)>,
    InterfaceMethod<"how often the rows are there", "void", "setPre", (ins "uint64_t":$pre)>,
    InterfaceMethod<"the rows of what is received", "void", "setRows", (ins "int64_t":$rows)>,
  ];
}

def Spmd_PaddingOpInterface : OpInterface<"PaddingOpInterface"> {
  let cppNamespace = "::spmd";
  let description = [{
    An op whose results may be flat buffers: what is in their elements that are in no segment.
  }];
  let methods = [
    InterfaceMethod<"the operand whose padding is that of a result; null if it is zero there",
                    "::mlir::Value", "getPaddingSource", (ins "::mlir::OpResult":$result), "", [{
      return $_op->getOperand(result.getResultNumber());
    }]>,
  ];
}

#endif // SPMD_INTERFACES_TD
