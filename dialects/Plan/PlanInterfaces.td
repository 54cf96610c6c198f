//===- PlanInterfaces.td - what commands of a plan answer -----------===//
#ifndef SPMD_DIALECTS_PLAN_PLANINTERFACES_TD
#define SPMD_DIALECTS_PLAN_PLANINTERFACES_TD

include "mlir/IR/OpBase.td"

def Plan_CommandOpInterface : OpInterface<"CommandOpInterface"> {
  let cppNamespace = "::spmd::plan";
  let description = [{
    A command: it runs on one stream, after the commands before it on that stream, and touches the bytes of its refs
    between its start and its event.
  }];
  let methods = [
    InterfaceMethod<"The stream that the command runs on.", "::spmd::plan::Stream", "getStream">,
    InterfaceMethod<"The event of its completion.", "::mlir::Value", "getEvent">,
    InterfaceMethod<"Every range of bytes that the command touches, in operand order.",
                    "::llvm::SmallVector<::spmd::plan::RefAttr>", "getRefs">,
    InterfaceMethod<"The communicator of a collective; null for every other command.", "::mlir::FlatSymbolRefAttr",
                    "getCommunicator", (ins), "", "return {};">,
    InterfaceMethod<"The command that this one waits for on another stream; null for every other command.",
                    "::mlir::Value", "getAwaitedEvent", (ins), "", "return ::mlir::Value();">
  ];
}

def Plan_LaunchOpInterface : OpInterface<"LaunchOpInterface"> {
  let cppNamespace = "::spmd::plan";
  let description = [{
    A command that launches a generated kernel, whose arguments are its refs.
  }];
  let methods = [
    InterfaceMethod<"The kernel.", "::mlir::FlatSymbolRefAttr", "getKernelAttr">,
    InterfaceMethod<"Makes it another one.", "void", "setKernelAttr", (ins "::mlir::FlatSymbolRefAttr":$kernel)>,
    InterfaceMethod<"Its iterations.", "uint64_t", "getParallel">,
    InterfaceMethod<"How many of them a thread takes at once.", "uint64_t", "getGrain">
  ];
}

def Plan_CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::spmd::plan";
  let description = [{
    A command that is a collective: its refs are what is sent and what is received, or in place the buffers.
  }];
  let methods = [
    InterfaceMethod<"Which collective it is.", "::spmd::plan::CollectiveKind", "getCollectiveKind">,
    InterfaceMethod<"Elements of a rank's part, or in place of each buffer.", "::llvm::SmallVector<int64_t>",
                    "getElementCounts">,
    InterfaceMethod<"How values are combined, one for each count; none where they are only moved.",
                    "::llvm::SmallVector<::spmd::plan::ReductionKind>", "getReductions">,
    InterfaceMethod<"The type of the elements.", "::mlir::Type", "getDtype">,
    InterfaceMethod<"The shard unit whose values they are; empty if none.", "::llvm::StringRef", "getUnit">,
    InterfaceMethod<"The communicator.", "::llvm::StringRef", "getComm">
  ];
}

#endif // SPMD_DIALECTS_PLAN_PLANINTERFACES_TD
