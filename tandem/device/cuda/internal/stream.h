#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "tandem/device/cuda/internal/collective.h"
#include "tandem/device/cuda/internal/command_list.h"
#include "tandem/device/cuda/internal/gpu.h"
#include "tandem/device/cuda/internal/marker.h"
#include "tandem/device/cuda/internal/ring_queue.h"
#include "tandem/device/cuda/internal/segment_graph.h"

namespace tandem::cuda {

/// A point in a stream: first the stream's launcher issues it to the GPU, then it is over there.
class EventState {
 public:
  /// What the launcher has come to: the marker that is over when the event is, null if there is
  /// nothing on the GPU to wait for.
  void issue(std::shared_ptr<Marker> marker);
  /// Blocks until the launcher of its stream has come to it. Null if there is nothing on the GPU to
  /// wait for any more.
  std::shared_ptr<Marker> issued();
  void set_over();
  bool over() const;
  void wait();

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Marker> marker_;
  bool issued_ = false;
  bool over_ = false;
};

/// A CUDA stream with two threads: the launcher runs what is enqueued, in order, which hands work
/// to the GPU; the completer waits for the GPU and reports that it is over. So `run` may launch and
/// return, `done` comes when the GPU is done, and the GPU always has the next work at hand.
///
/// What the kernels of a piece of work launch is gathered in a CommandList and issued to the driver
/// when the piece ends, or sooner where a kernel waits for the GPU or there is much of it. A
/// segment that launches the same again becomes a CUDA graph (SegmentGraph).
///
/// A marker follows what was issued; what issues nothing, and an event right behind, share the one
/// before, so that no call of the driver is made for them.
///
/// What cannot be known to be over on the GPU keeps its memory: if neither an event nor the stream
/// can be waited for, the GPU counts as lost.
class StreamState {
 public:
  explicit StreamState(TandemDevice* device);
  ~StreamState();
  StreamState(const StreamState&) = delete;
  StreamState& operator=(const StreamState&) = delete;

  void enqueue(const TandemWork& work);
  void enqueue(const TandemCopy& copy);
  /// To all of these streams, at one point between what others enqueue to them: the member of the
  /// stream's place in the list is its part.
  static void enqueue_together(const std::vector<StreamState*>& streams,
                               const std::shared_ptr<Collective>& collective,
                               const TandemCollective& work);
  std::shared_ptr<EventState> record();
  void wait_for(std::shared_ptr<EventState> event);

  /// The stream that the calling thread launches into; throws Failure outside of kernels.
  static StreamState& current();
  /// That of the stream; null on threads that launch into none.
  static TandemDevice* device_of_thread();
  TandemDevice* device() const { return device_; }
  Gpu& gpu() { return gpu_; }
  /// The commands of the running piece of work, to add to.
  CommandList& commands() { return commands_; }
  /// To be called after adding to `commands`: issues them if they need not be kept.
  void added();
  /// Issues what was added so far. Throws Failure.
  void flush();
  /// `flush`, and waits until the GPU is done with it.
  void synchronize();
  Gpu& gpu() const { return gpu_; }
  /// How long the GPU takes for what `issue` issues to the stream, in seconds: the best of some
  /// runs. Waits for all that was added before. Only within a kernel. Throws Failure.
  double measure(const std::function<void(CUstream)>& issue);
  /// How often `measure` calls it.
  static constexpr int kRunsOfMeasure = 4;
  /// Copies within the piece of work that runs.
  void add(const TandemCopy& copy);

 private:
  enum class Kind { kWork, kCopy, kCollective, kRecord, kWait };
  struct Entry {
    Kind kind = Kind::kWork;
    TandemWork work = {};
    TandemCopy copy = {};
    std::shared_ptr<EventState> event;
    std::shared_ptr<Collective> collective = nullptr;  // whose `done` is that of `work`
    std::size_t rank = 0;
  };
  // What the launcher has handed to the GPU: over when the marker is.
  struct Issued {
    void (*done)(void*, const TandemStatus*) = nullptr;
    void* arg = nullptr;
    TandemStatus status;
    std::shared_ptr<Marker> marker;
    std::shared_ptr<EventState> recorded;  // over when the marker is
    std::shared_ptr<Marker> awaited;       // kept until the GPU has come past it
    std::shared_ptr<SegmentGraph> graph;   // that was launched
    std::shared_ptr<Collective> collective;
  };
  // What is known of a segment: the commands of its last run, then graphs of them, the one launched
  // last at the end. Variables that get other memory with each value change between two addresses,
  // for each of which there is a graph.
  struct Segment {
    CommandList last;
    std::vector<std::shared_ptr<SegmentGraph>> graphs;
    int misses = 0;
    int changes = 0;         // runs whose parameters no graph had
    std::uint64_t used = 0;  // in which piece of work, by number
  };

  void refuse_if_lost() const;
  void append(Entry&& entry);
  void enter_context();
  void launch_all();
  void complete_all();
  Issued launch(Entry& entry);
  void run(const TandemWork& work, Issued& issued);
  void copy(const TandemCopy& copy);
  Issued launch_collective(Entry& entry);
  void issue_segment(std::uint64_t number, Issued& issued);
  Segment& segment(std::uint64_t number);
  bool launch_graph(Segment& segment, Issued& issued);
  std::shared_ptr<SegmentGraph> graph_for_commands(Segment& segment);
  std::shared_ptr<Marker> mark();
  void settle();
  void complete(Issued& issued);

  TandemDevice* const device_;
  Gpu& gpu_;
  CUstream stream_ = nullptr;
  // The launcher's:
  CommandList commands_;
  bool keeping_ = false;  // commands_ may become a graph, or be one
  std::uint64_t pieces_ = 0;
  std::unordered_map<std::uint64_t, Segment> segments_;
  const std::shared_ptr<MarkerPool> markers_ = std::make_shared<MarkerPool>();
  std::shared_ptr<Marker> last_marker_;
  bool unmarked_ = false;  // something was issued after the last marker

  std::mutex mutex_;  // for the queues and the ends
  std::condition_variable entered_;
  std::condition_variable issued_;
  RingQueue<Entry> entries_;
  RingQueue<Issued> issues_;
  bool ending_ = false;
  bool launched_all_ = false;
  std::thread launcher_;
  std::thread completer_;
};

}  // namespace tandem::cuda

struct TandemStream {
  explicit TandemStream(TandemDevice* device) : state(device) {}
  tandem::cuda::StreamState state;
};

struct TandemEvent {
  std::shared_ptr<tandem::cuda::EventState> state;
};
