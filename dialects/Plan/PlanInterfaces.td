//===- PlanInterfaces.td - what every command of a plan answers -----------===//
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

#endif // SPMD_DIALECTS_PLAN_PLANINTERFACES_TD
