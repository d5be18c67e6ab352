#include "tandem/device/cuda/internal/stream.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "tandem/device/cuda/internal/timer.h"

namespace tandem::cuda {
namespace {

// Segments whose commands or graphs are kept by a stream.
constexpr std::size_t kMaxSegments = 64;
// Graphs of a segment.
constexpr std::size_t kMaxGraphs = 2;
// How often a segment may launch other commands than its graph has before it gets none any more.
constexpr int kMaxMisses = 4;

StreamState*& launching_into() {
  thread_local StreamState* stream = nullptr;
  return stream;
}

TandemStatus no_error() {
  TandemStatus status;
  status.size = sizeof(status);
  status.code = TANDEM_OK;
  status.message[0] = '\0';
  return status;
}

CUdeviceptr on_gpu(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }

bool same_commands(const CommandList& a, const CommandList& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!a[i].is_like(b[i])) return false;
  }
  return true;
}

}  // namespace

// ---- Events ----

void EventState::issue(std::shared_ptr<Marker> marker) {
  std::lock_guard lock(mutex_);
  marker_ = std::move(marker);
  issued_ = true;
  changed_.notify_all();
}

std::shared_ptr<Marker> EventState::issued() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return issued_; });
  return over_ || (marker_ && marker_->over()) ? nullptr : marker_;
}

void EventState::set_over() {
  std::lock_guard lock(mutex_);
  over_ = true;
  marker_ = nullptr;
  changed_.notify_all();
}

bool EventState::over() const {
  std::lock_guard lock(mutex_);
  return over_;
}

void EventState::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return over_; });
}

// ---- Streams ----

StreamState::StreamState(TandemDevice* device) : device_(device), gpu_(*device->gpu) {
  {
    const ContextScope context(gpu_);
    gpu_.check(driver().p_cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  }
  launcher_ = std::thread([this] { launch_all(); });
  completer_ = std::thread([this] { complete_all(); });
}

StreamState::~StreamState() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  entered_.notify_all();
  launcher_.join();
  completer_.join();
  TandemStatus ignored = no_error();
  guarded(&ignored, [&] {
    const ContextScope context(gpu_);
    segments_.clear();
  });
  driver().p_cuStreamDestroy(stream_);
}

StreamState& StreamState::current() {
  if (!launching_into()) throw Failure(TANDEM_INTERNAL, "a launch outside of a kernel");
  return *launching_into();
}

TandemDevice* StreamState::device_of_thread() {
  const StreamState* const stream = launching_into();
  return stream ? stream->device_ : nullptr;
}

void StreamState::flush() {
  keeping_ = false;
  unmarked_ = unmarked_ || !commands_.empty();
  for (std::size_t i = 0; i < commands_.size(); ++i) commands_.issue(i, gpu_, stream_);
  commands_.clear();
}

void StreamState::synchronize() {
  flush();
  gpu_.check(driver().p_cuStreamSynchronize(stream_), "cuStreamSynchronize");
  unmarked_ = false;
  last_marker_ = nullptr;
}

double StreamState::measure(const std::function<void(CUstream)>& issue) {
  synchronize();
  unmarked_ = true;
  Timer timer(gpu_);
  timer.seconds(stream_, issue);  // the first one loads code
  double best = timer.seconds(stream_, issue);
  for (int i = 2; i < kRunsOfMeasure; ++i) best = std::min(best, timer.seconds(stream_, issue));
  return best;
}

void StreamState::added() {
  if (!keeping_) flush();
}

void StreamState::add(const TandemCopy& copy) {
  if (copy.bytes == 0) return;
  Command c;
  c.bytes = static_cast<std::size_t>(copy.bytes);
  if (copy.kind == TANDEM_COPY_TO_DEVICE) {
    c.kind = Command::Kind::kToGpu;
    c.to = on_gpu(copy.to);
    c.host_from = copy.from;
  } else if (copy.kind == TANDEM_COPY_TO_HOST) {
    c.kind = Command::Kind::kToHost;
    c.from = on_gpu(copy.from);
    c.host_to = copy.to;
  } else {
    throw Failure(TANDEM_UNIMPLEMENTED, "a segment copies between the host and its GPU alone");
  }
  commands_.set_node("");
  commands_.add(c);
  added();
}

void StreamState::refuse_if_lost() const {
  if (gpu_.is_lost()) throw Failure(TANDEM_UNAVAILABLE, gpu_.lost());
}

void StreamState::append(Entry&& entry) {
  std::lock_guard lock(mutex_);
  entries_.push(std::move(entry));
  entered_.notify_one();
}

void StreamState::enqueue(const TandemWork& work) {
  refuse_if_lost();
  std::lock_guard lock(mutex_);
  Entry& entry = entries_.push_slot();
  entry.kind = Kind::kWork;
  entry.work = work;
  entered_.notify_one();
}

void StreamState::enqueue(const TandemCopy& copy) {
  refuse_if_lost();
  append({.kind = Kind::kCopy, .work = {}, .copy = copy, .event = nullptr});
}

// With the locks of all of them: else one stream could have a wait for another's event in front of
// its part, and the other one its part in front of that event.
void StreamState::enqueue_together(const std::vector<StreamState*>& streams,
                                   const std::shared_ptr<Collective>& collective,
                                   const TandemCollective& work) {
  std::vector<StreamState*> in_order = streams;
  std::sort(in_order.begin(), in_order.end(), std::less<>());
  std::vector<std::unique_lock<std::mutex>> locks;
  for (StreamState* stream : in_order) locks.emplace_back(stream->mutex_);
  for (std::size_t i = 0; i < streams.size(); ++i) {
    Entry& entry = streams[i]->entries_.push_slot();
    entry.kind = Kind::kCollective;
    entry.work.done = work.members[i]->done;
    entry.work.arg = work.members[i]->arg;
    entry.collective = collective;
    entry.rank = i;
    streams[i]->entered_.notify_one();
  }
}

std::shared_ptr<EventState> StreamState::record() {
  auto event = std::make_shared<EventState>();
  append({.kind = Kind::kRecord, .work = {}, .copy = {}, .event = event});
  return event;
}

void StreamState::wait_for(std::shared_ptr<EventState> event) {
  append({.kind = Kind::kWait, .work = {}, .copy = {}, .event = std::move(event)});
}

// The point behind all that was issued, for the completer; null if that is over.
std::shared_ptr<Marker> StreamState::mark() {
  if (!unmarked_) return last_marker_;
  last_marker_ = markers_->record(stream_);
  if (!last_marker_) settle();
  unmarked_ = false;
  return last_marker_;
}

// Waits for all that was issued, or loses the GPU.
void StreamState::settle() {
  const CUresult result = driver().p_cuStreamSynchronize(stream_);
  if (result != CUDA_SUCCESS && !gpu_.is_lost())
    gpu_.lose("work on the GPU cannot be waited for: " + text_of(result));
}

void StreamState::copy(const TandemCopy& copy) {
  if (copy.bytes == 0) return;
  unmarked_ = true;
  const Driver& d = driver();
  const auto bytes = static_cast<std::size_t>(copy.bytes);
  if (copy.kind == TANDEM_COPY_TO_DEVICE) {
    gpu_.check(d.p_cuMemcpyHtoDAsync(on_gpu(copy.to), copy.from, bytes, stream_),
               "a copy to the GPU");
  } else if (copy.kind == TANDEM_COPY_TO_HOST) {
    gpu_.check(d.p_cuMemcpyDtoHAsync(copy.to, on_gpu(copy.from), bytes, stream_),
               "a copy from the GPU");
  } else if (copy.from_device->gpu == copy.to_device->gpu) {
    gpu_.check(d.p_cuMemcpyDtoDAsync(on_gpu(copy.to), on_gpu(copy.from), bytes, stream_),
               "a copy on the GPU");
  } else {
    gpu_.check(
        d.p_cuMemcpyPeerAsync(on_gpu(copy.to), copy.to_device->gpu->context(), on_gpu(copy.from),
                              copy.from_device->gpu->context(), bytes, stream_),
        "a copy between GPUs");
  }
}

// ---- Segments ----

StreamState::Segment& StreamState::segment(std::uint64_t number) {
  Segment& known = segments_[number];
  known.used = pieces_;
  if (segments_.size() > kMaxSegments) {
    const auto oldest = std::min_element(
        segments_.begin(), segments_.end(),
        [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
    segments_.erase(oldest);  // never the newest
  }
  return known;
}

// One that is free and has the commands as they are, a new one, or the one whose launch is longest
// ago. Null if there is none.
std::shared_ptr<SegmentGraph> StreamState::graph_for_commands(Segment& segment) {
  std::vector<std::shared_ptr<SegmentGraph>>& graphs = segment.graphs;
  auto found = graphs.end();
  for (auto graph = graphs.begin(); graph != graphs.end() && found == graphs.end(); ++graph) {
    if (!(*graph)->busy() && (*graph)->equals(commands_)) found = graph;
  }
  const bool changed = found == graphs.end();
  if (changed && (graphs.empty() || (graphs.size() < kMaxGraphs && ++segment.changes > 1))) {
    graphs.push_back(std::make_shared<SegmentGraph>(gpu_, commands_, stream_));
    return graphs.back();
  }
  if (changed) found = graphs.begin();
  if ((*found)->busy()) return nullptr;
  std::rotate(found, found + 1, graphs.end());
  return graphs.back();
}

// False if the commands are to be issued one by one.
bool StreamState::launch_graph(Segment& segment, Issued& issued) {
  if (!segment.graphs.empty() && !segment.graphs.front()->fits(commands_)) {
    segment.graphs.clear();
    ++segment.misses;
  }
  const bool again = !segment.last.empty() && same_commands(segment.last, commands_);
  if (segment.graphs.empty() && !again) return false;
  try {
    const std::shared_ptr<SegmentGraph> graph = graph_for_commands(segment);
    if (!graph) return false;
    unmarked_ = true;
    graph->launch(commands_, stream_);
    issued.graph = graph;
    return true;
  } catch (const Failure&) {
    // One by one they may still do; what is wrong with them is then said with their names.
    segment.graphs.clear();
    ++segment.misses;
    return false;
  }
}

void StreamState::issue_segment(std::uint64_t number, Issued& issued) {
  if (commands_.empty() || !keeping_) return flush();
  Segment& known = segment(number);
  if (SegmentGraph::suits(commands_) && launch_graph(known, issued)) return commands_.clear();
  known.last = commands_;
  flush();
}

void StreamState::run(const TandemWork& work, Issued& issued) {
  ++pieces_;
  commands_.set_node("");
  const auto known = segments_.find(work.segment);
  keeping_ = work.segment != 0 && (known == segments_.end() || known->second.misses < kMaxMisses);
  try {
    if (work.on_host != 0) synchronize();
    work.run(work.arg);
    if (keeping_) {
      issue_segment(work.segment, issued);
    } else {
      flush();
    }
  } catch (...) {
    commands_.clear();
    throw;
  }
}

// ---- The threads ----

StreamState::Issued StreamState::launch(Entry& entry) {
  Issued issued{.status = no_error()};
  switch (entry.kind) {
    case Kind::kRecord:
      if (!gpu_.is_lost()) issued.marker = mark();
      entry.event->issue(issued.marker);
      issued.recorded = std::move(entry.event);
      return issued;
    case Kind::kWait: {
      const std::shared_ptr<Marker> marker = entry.event->issued();
      // What follows in the stream that the marker is of comes behind it anyway.
      if (!marker || marker->stream() == stream_ || gpu_.is_lost()) return issued;
      unmarked_ = true;
      if (driver().p_cuStreamWaitEvent(stream_, marker->event(), CU_EVENT_WAIT_DEFAULT) !=
              CUDA_SUCCESS &&
          !marker->wait()) {
        gpu_.lose("another stream cannot be waited for");
      }
      issued.awaited = marker;
      return issued;
    }
    case Kind::kCollective: return launch_collective(entry);
    case Kind::kWork:
    case Kind::kCopy: break;
  }
  const bool works = entry.kind == Kind::kWork;
  issued.done = works ? entry.work.done : entry.copy.done;
  issued.arg = works ? entry.work.arg : entry.copy.arg;
  bool begun = false;
  guarded(&issued.status, [&] {
    refuse_if_lost();
    begun = !works || entry.work.on_host == 0;
    if (works) {
      run(entry.work, issued);
    } else {
      copy(entry.copy);
    }
  });
  if (begun) issued.marker = mark();
  if (issued.status.code == TANDEM_OK) guarded(&issued.status, [&] { refuse_if_lost(); });
  return issued;
}

// Also where the GPU is lost: the others wait for this launcher.
StreamState::Issued StreamState::launch_collective(Entry& entry) {
  Issued issued{.status = no_error()};
  issued.done = entry.work.done;
  issued.arg = entry.work.arg;
  guarded(&issued.status, [&] {
    entry.collective->issue(entry.rank, stream_);
    issued.collective = std::move(entry.collective);
    unmarked_ = true;
    issued.marker = mark();
    refuse_if_lost();
  });
  return issued;
}

void StreamState::enter_context() {
  TandemStatus status = no_error();
  guarded(&status,
          [&] { gpu_.check(driver().p_cuCtxSetCurrent(gpu_.context()), "cuCtxSetCurrent"); });
  if (status.code != TANDEM_OK) gpu_.lose(status.message);
}

void StreamState::launch_all() {
  enter_context();
  launching_into() = this;
  std::unique_lock lock(mutex_);
  for (;;) {
    entered_.wait(lock, [&] { return ending_ || !entries_.empty(); });
    if (entries_.empty()) break;
    Entry entry = entries_.pop();
    lock.unlock();
    Issued issued = launch(entry);
    lock.lock();
    issues_.push(std::move(issued));
    issued_.notify_one();
  }
  launched_all_ = true;
  issued_.notify_one();
}

void StreamState::complete(Issued& issued) {
  if (issued.marker && !issued.marker->wait()) settle();
  if (issued.marker && issued.status.code == TANDEM_OK)
    guarded(&issued.status, [&] { refuse_if_lost(); });
  if (issued.collective) {
    TandemStatus status = no_error();
    guarded(&status, [&] { issued.collective->over(); });
    if (issued.status.code == TANDEM_OK) issued.status = status;
  }
  if (issued.graph) issued.graph->deliver(issued.status.code == TANDEM_OK);
  issued.graph = nullptr;
  if (issued.done) issued.done(issued.arg, &issued.status);
  if (issued.recorded) issued.recorded->set_over();
}

void StreamState::complete_all() {
  enter_context();
  std::unique_lock lock(mutex_);
  for (;;) {
    issued_.wait(lock, [&] { return launched_all_ || !issues_.empty(); });
    if (issues_.empty()) return;
    Issued issued = issues_.pop();
    lock.unlock();
    complete(issued);
    issued = {};
    lock.lock();
  }
}

}  // namespace tandem::cuda
