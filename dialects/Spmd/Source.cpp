//===- Source.cpp - where an op comes from, for people --------------------===//

#include "dialects/Spmd/Source.h"

using namespace mlir;

namespace spmd {

Location getSourceLoc(StringRef module, Location frames) {
  MLIRContext *ctx = frames.getContext();
  return FusedLoc::get(ctx, {frames}, SrcAttr::get(ctx, module));
}

StringRef getModulePath(Location loc) {
  StringRef path;
  loc->walk([&](Location nested) {
    if (auto fused = dyn_cast<FusedLoc>(nested))
      if (auto src = dyn_cast_or_null<SrcAttr>(fused.getMetadata())) {
        path = src.getModule();
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return path;
}

FileLineColLoc getUserFrame(Location loc) {
  FileLineColLoc frame;
  loc->walk([&](Location nested) {
    if (!isa<FileLineColLoc>(nested))
      return WalkResult::advance();
    frame = cast<FileLineColLoc>(nested);
    return WalkResult::interrupt();
  });
  return frame;
}

std::string describeSource(Location loc) {
  std::string text = getModulePath(loc).str();
  if (FileLineColLoc frame = getUserFrame(loc)) {
    if (!text.empty())
      text += ", ";
    text += frame.getFilename().str() + ":" + std::to_string(frame.getLine());
  }
  return text;
}

} // namespace spmd
