//===- Streams.cpp - Streams, events, capture, graphs ---------------------===//

#include "Streams.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <vector>

using namespace standin;

namespace standin {
thread_local Context current = nullptr;

static std::vector<StreamHandle> &allStreams() {
  static std::vector<StreamHandle> streams;
  return streams;
}

Result forbiddenInCapture() {
  for (StreamHandle stream : allStreams())
    if (stream->graph && stream->capturer == std::this_thread::get_id()) {
      stream->graph->invalid = true;
      return kCaptureUnsupported;
    }
  return kSuccess;
}

size_t numStreams() { return allStreams().size(); }
size_t numEvents = 0, numGraphs = 0;
std::set<uint64_t> underway; ///< captures

/// A graph that can be launched.
struct Exec {
  Captured graph;
  std::vector<uint32_t> lane;
  std::vector<int> leaves;
  Frontier last;
  Clock lastClock;
  uint64_t launches = 0;
};

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
} // namespace standin

#define LOCK std::lock_guard<std::recursive_mutex> lock(mutex)
#define ENTER(function)                                                                                                \
  LOCK;                                                                                                                \
  if (Result result = standInEnter(function))                                                                          \
  return result == kLeftOut ? kSuccess : result

STANDIN_API Result cuCtxSetCurrent(Context context) {
  ENTER("cuCtxSetCurrent");
  current = context;
  return kSuccess;
}

STANDIN_API Result cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  ENTER("cuCtxGetStreamPriorityRange");
  *least = 0;
  *greatest = -5;
  return kSuccess;
}

STANDIN_API Result cuStreamCreateWithPriority(StreamHandle *stream, unsigned flags, int priority) {
  ENTER("cuStreamCreateWithPriority");
  if (!(flags & kStreamNonBlocking) || !current)
    return kInvalidValue; // ours never synchronize with the legacy stream
  static uint32_t made = 0;
  *stream = new CUstream_st;
  (*stream)->lane = makeLane();
  (*stream)->number = made++;
  if (standInSetting("made"))
    std::fprintf(stderr, "stand-in: a stream of priority %d\n", priority);
  allStreams().push_back(*stream);
  return kSuccess;
}

STANDIN_API Result cuStreamDestroy_v2(StreamHandle stream) {
  ENTER("cuStreamDestroy");
  auto &streams = allStreams();
  auto it = std::find(streams.begin(), streams.end(), stream);
  if (it == streams.end())
    return kInvalidHandle;
  streams.erase(it);
  delete stream;
  return kSuccess;
}

STANDIN_API Result cuStreamSynchronize(StreamHandle stream) {
  {
    ENTER("cuStreamSynchronize");
    if (Result result = forbiddenInCapture())
      return result;
  }
  waitUntil([&] { return stream->frontier.isDone(); });
  LOCK;
  hostSees(stream->clock);
  return kSuccess;
}

STANDIN_API Result cuStreamQuery(StreamHandle stream) {
  ENTER("cuStreamQuery");
  if (Result result = forbiddenInCapture())
    return result;
  if (!runUntil([&] { return stream->frontier.isDone(); }))
    return kNotReady;
  hostSees(stream->clock);
  return kSuccess;
}

STANDIN_API Result cuEventCreate(Event *event, unsigned flags) {
  ENTER("cuEventCreate");
  *event = new CUevent_st;
  (*event)->isTimed = !(flags & kEventDisableTiming);
  ++numEvents;
  return kSuccess;
}

STANDIN_API Result cuEventDestroy_v2(Event event) {
  ENTER("cuEventDestroy");
  delete event;
  --numEvents;
  return kSuccess;
}

static Result record(Event event, StreamHandle stream, bool isExternal) {
  if (stream->graph && isExternal) {
    stream->graph->nodes.push_back({std::make_shared<Work>(), stream->nodes, stream->number, event});
    stream->nodes = {static_cast<int>(stream->graph->nodes.size()) - 1};
    return kSuccess;
  }
  event->isRecorded = true;
  event->graph = stream->graph;
  event->capture = stream->graph ? stream->graph->number : 0;
  event->nodes = stream->nodes;
  if (stream->graph)
    return kSuccess;
  if (event->isTimed) {
    auto work = std::make_shared<Work>();
    work->name = "an event";
    work->run = [event](uint64_t) {
      event->seconds = now();
      return 1;
    };
    if (Result result = enqueue(stream, std::move(work)))
      return result;
  }
  event->frontier.assign(stream->frontier);
  event->clock = stream->clock;
  join(event->clock, host);
  return kSuccess;
}

STANDIN_API Result cuEventRecord(Event event, StreamHandle stream) {
  ENTER("cuEventRecord");
  return record(event, stream, false);
}

STANDIN_API Result cuEventRecordWithFlags(Event event, StreamHandle stream, unsigned flags) {
  ENTER("cuEventRecordWithFlags");
  return record(event, stream, flags & kEventRecordExternal);
}

STANDIN_API Result cuStreamWaitEvent(StreamHandle stream, Event event, unsigned) {
  ENTER("cuStreamWaitEvent");
  if (!event->isRecorded)
    return kSuccess; // as the driver: no error, and no order
  if (event->graph && !underway.count(event->capture))
    return kCaptureIsolation; // recorded in one that has ended
  if (event->graph) {
    if (stream->graph && stream->graph != event->graph)
      return kCaptureMerge;
    if (!stream->graph) {
      stream->graph = event->graph;
      stream->capturer = std::this_thread::get_id();
      stream->nodes.clear();
      event->graph->streams.insert(stream);
    }
    for (int node : event->nodes)
      if (std::find(stream->nodes.begin(), stream->nodes.end(), node) == stream->nodes.end())
        stream->nodes.push_back(node);
    return kSuccess;
  }
  if (stream->graph)
    return kCaptureIsolation;
  stream->frontier.add(event->frontier);
  join(stream->clock, event->clock);
  return kSuccess;
}

STANDIN_API Result cuEventSynchronize(Event event) {
  {
    ENTER("cuEventSynchronize");
    if (Result result = forbiddenInCapture())
      return result;
  }
  waitUntil([&] { return event->frontier.isDone(); });
  LOCK;
  hostSees(event->clock);
  return kSuccess;
}

STANDIN_API Result cuEventQuery(Event event) {
  ENTER("cuEventQuery");
  if (Result result = forbiddenInCapture())
    return result;
  if (!runUntil([&] { return event->frontier.isDone(); }))
    return kNotReady;
  hostSees(event->clock);
  return kSuccess;
}

STANDIN_API Result cuEventElapsedTime(float *milliseconds, Event begin, Event end) {
  ENTER("cuEventElapsedTime");
  if (!begin->isTimed || !end->isTimed || !begin->isRecorded || !end->isRecorded)
    return kInvalidHandle;
  if (!begin->frontier.isDone() || !end->frontier.isDone())
    return kNotReady;
  *milliseconds = static_cast<float>((end->seconds - begin->seconds) * 1e3);
  return kSuccess;
}

//---- capture ----

STANDIN_API Result cuStreamBeginCapture_v2(StreamHandle stream, int) {
  ENTER("cuStreamBeginCapture");
  if (stream->graph)
    return kIllegalState;
  stream->graph = new Captured;
  static uint64_t captures = 0;
  underway.insert(stream->graph->number = ++captures);
  stream->isOrigin = true;
  stream->capturer = std::this_thread::get_id();
  stream->nodes.clear();
  stream->graph->streams.insert(stream);
  return kSuccess;
}

STANDIN_API Result cuStreamEndCapture(StreamHandle stream, Graph *out) {
  LOCK;
  Result told = standInEnter("cuStreamEndCapture"); // the capture ends, whatever the result
  Captured *graph = stream->graph;
  *out = nullptr;
  if (!graph)
    return kIllegalState;
  if (!stream->isOrigin)
    return kCaptureUnmatched;
  underway.erase(graph->number);
  std::vector<bool> joined(graph->nodes.size());
  for (int node : stream->nodes)
    joined[static_cast<size_t>(node)] = true;
  for (size_t i = graph->nodes.size(); i-- > 0;)
    if (joined[i])
      for (int before : graph->nodes[i].after)
        joined[static_cast<size_t>(before)] = true;
  bool unjoined = false;
  for (StreamHandle other : graph->streams) {
    for (int node : other->nodes)
      unjoined |= !joined[static_cast<size_t>(node)];
    other->graph = nullptr;
    other->isOrigin = false;
    other->nodes.clear();
  }
  Result result = told ? told : graph->invalid ? kCaptureInvalidated : unjoined ? kCaptureUnjoined : kSuccess;
  if (result) {
    delete graph;
    return result;
  }
  *out = reinterpret_cast<Graph>(graph);
  return kSuccess;
}

STANDIN_API Result cuGraphGetNodes(Graph graph, GraphNode *, size_t *count) {
  ENTER("cuGraphGetNodes");
  *count = reinterpret_cast<Captured *>(graph)->nodes.size();
  return kSuccess;
}

STANDIN_API Result cuGraphInstantiateWithFlags(GraphExec *out, Graph from, unsigned long long) {
  ENTER("cuGraphInstantiate");
  if (Result result = forbiddenInCapture())
    return result;
  auto *exec = new Exec;
  exec->graph = *reinterpret_cast<Captured *>(from);
  // Lanes: a node goes on with that of a node before it, if no other node has.
  std::map<uint32_t, int> last;
  std::vector<bool> hasFollower(exec->graph.nodes.size());
  for (size_t i = 0; i < exec->graph.nodes.size(); ++i) {
    uint32_t lane = 0;
    for (int before : exec->graph.nodes[i].after) {
      hasFollower[static_cast<size_t>(before)] = true;
      if (!lane && last[exec->lane[static_cast<size_t>(before)]] == before)
        lane = exec->lane[static_cast<size_t>(before)];
    }
    if (!lane)
      lane = makeLane();
    last[lane] = static_cast<int>(i);
    exec->lane.push_back(lane);
  }
  for (size_t i = 0; i < hasFollower.size(); ++i)
    if (!hasFollower[i])
      exec->leaves.push_back(static_cast<int>(i));
  *out = reinterpret_cast<GraphExec>(exec);
  ++numGraphs;
  return kSuccess;
}

STANDIN_API Result cuGraphUpload(GraphExec, StreamHandle) {
  ENTER("cuGraphUpload");
  return forbiddenInCapture();
}

STANDIN_API Result cuGraphLaunch(GraphExec graph, StreamHandle stream) {
  ENTER("cuGraphLaunch");
  if (stream->graph)
    return kCaptureUnsupported;
  if (!isExecuting())
    return kSuccess;
  auto *exec = reinterpret_cast<Exec *>(graph);
  Clock start = stream->clock;
  join(start, host);
  join(start, exec->lastClock); // launches of a graph wait for each other
  std::vector<Command *> roots = stream->frontier.all();
  for (Command *command : exec->last.all())
    if (std::find(roots.begin(), roots.end(), command) == roots.end())
      roots.push_back(command);
  Frontier all;
  std::vector<Command *> commands;
  std::vector<Clock> clocks(exec->graph.nodes.size());
  for (size_t i = 0; i < exec->graph.nodes.size(); ++i) {
    const Node &node = exec->graph.nodes[i];
    std::vector<Command *> after;
    clocks[i] = start;
    for (int before : node.after) {
      after.push_back(commands[static_cast<size_t>(before)]);
      join(clocks[i], clocks[static_cast<size_t>(before)]);
    }
    commands.push_back(issue(node.work, node.after.empty() ? roots : after, clocks[i], exec->lane[i], node.stream,
                             exec->launches));
    all.add(commands.back());
    if (node.records) {
      Frontier frontier;
      frontier.add(commands.back());
      node.records->frontier.assign(frontier);
      node.records->clock = clocks[i];
      node.records->isRecorded = true;
      node.records->graph = nullptr;
    }
  }
  Frontier leaves;
  for (int leaf : exec->leaves) {
    leaves.add(commands[static_cast<size_t>(leaf)]);
    join(stream->clock, clocks[static_cast<size_t>(leaf)]);
  }
  if (!exec->leaves.empty()) {
    stream->frontier.assign(leaves);
    exec->last.assign(leaves);
    exec->lastClock = stream->clock;
  }
  ++exec->launches;
  return kSuccess;
}

STANDIN_API int standInCaptures(StreamHandle stream) {
  LOCK;
  return stream->graph != nullptr;
}

STANDIN_API int standInGraphs() {
  LOCK;
  return static_cast<int>(numGraphs);
}

STANDIN_API Result cuGraphDestroy(Graph graph) {
  ENTER("cuGraphDestroy");
  delete reinterpret_cast<Captured *>(graph);
  return kSuccess;
}

STANDIN_API Result cuGraphExecDestroy(GraphExec graph) {
  ENTER("cuGraphExecDestroy");
  delete reinterpret_cast<Exec *>(graph);
  --numGraphs;
  return kSuccess;
}
