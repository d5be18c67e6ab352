// A plugin whose devices exchange values by themselves: sums, gathers and broadcasts of floats,
// computed on the threads of their streams. The rest of it is the example plugin.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "tandem/device/plugin.h"

extern "C" void toy_plugin_init(const TandemHostApi* host, TandemPluginApi* plugin,
                                TandemStatus* status);

struct TandemCommunicator {
  std::vector<TandemStream*> streams;
};

namespace {

constexpr std::int32_t kFloat = 1;  // TensorFlow's number

TandemPluginApi toy;
std::atomic<int> computed{0}, communicators{0};
// What is put into queues of streams is put there under it, so that a collective stands in all of
// them at the same point.
std::mutex queues;

// The members of one collective, of which the last one to come computes for all.
struct Meeting {
  TandemCollective work;
  std::vector<TandemCollectiveMember> members;
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t come = 0;
  bool over = false, refused = false;
  TandemStatus failed = {};

  void compute() {
    const auto count = static_cast<std::size_t>(work.count);
    std::vector<float> result;
    for (const TandemCollectiveMember& member : members) {
      const auto* from = static_cast<const float*>(member.input);
      if (work.kind == TANDEM_ALL_GATHER) {
        result.insert(result.end(), from, from + count);
      } else if (from && result.empty()) {
        result.assign(from, from + count);
      } else if (from) {
        std::transform(from, from + count, result.begin(), result.begin(), std::plus<>());
      }
    }
    for (const TandemCollectiveMember& member : members)
      std::memcpy(member.output, result.data(), result.size() * sizeof(float));
    ++computed;
  }

  void arrive() {
    std::unique_lock lock(mutex);
    if (++come == members.size()) {
      compute();
      over = true;
      changed.notify_all();
    }
    changed.wait(lock, [&] { return over || failed.code != TANDEM_OK; });
  }

  void fail(const TandemStatus& status) {
    std::lock_guard lock(mutex);
    if (over || failed.code != TANDEM_OK) return;
    failed = status;
    changed.notify_all();
  }
};

struct Part {
  std::shared_ptr<Meeting> meeting;
  std::size_t rank;
};

void run_part(void* arg) { static_cast<Part*>(arg)->meeting->arrive(); }

// A member whose device is lost does not run: the others need not wait for it.
void end_part(void* arg, const TandemStatus* status) {
  const std::unique_ptr<Part> part(static_cast<Part*>(arg));
  Meeting& meeting = *part->meeting;
  if (status->code != TANDEM_OK) meeting.fail(*status);
  TandemStatus result;
  {
    std::lock_guard lock(meeting.mutex);
    if (meeting.refused) return;
    result = status->code != TANDEM_OK ? *status : meeting.failed;
  }
  result.size = sizeof(result);
  const TandemCollectiveMember& member = meeting.members[part->rank];
  member.done(member.arg, &result);
}

std::int32_t supported(std::int32_t kind, std::int32_t reduction, std::int32_t dtype) {
  const bool reduces = kind == TANDEM_ALL_REDUCE && reduction == TANDEM_REDUCE_SUM;
  return dtype == kFloat && (reduces || kind == TANDEM_ALL_GATHER || kind == TANDEM_BROADCAST);
}

TandemCommunicator* create(TandemStream* const* streams, std::size_t num_streams, TandemStatus*) {
  ++communicators;
  return new TandemCommunicator{{streams, streams + num_streams}};
}

void destroy(TandemCommunicator* communicator) {
  --communicators;
  delete communicator;
}

void enqueue(TandemCommunicator* communicator, const TandemCollective* work, TandemStatus* status) {
  const auto meeting = std::make_shared<Meeting>();
  meeting->work = *work;
  for (std::size_t i = 0; i < work->num_members; ++i) meeting->members.push_back(*work->members[i]);
  std::lock_guard lock(queues);
  for (std::size_t i = 0; i < work->num_members; ++i) {
    auto part = std::make_unique<Part>(Part{meeting, i});
    TandemWork given = {};
    given.size = sizeof(given);
    given.run = run_part;
    given.done = end_part;
    given.arg = part.get();
    toy.stream_enqueue(communicator->streams[i], &given, status);
    if (status->code != TANDEM_OK) {
      // The parts that are on their way end without a word.
      {
        std::lock_guard state(meeting->mutex);
        meeting->refused = true;
      }
      return meeting->fail(*status);
    }
    (void)part.release();
  }
}

void stream_enqueue(TandemStream* stream, const TandemWork* work, TandemStatus* status) {
  std::lock_guard lock(queues);
  toy.stream_enqueue(stream, work, status);
}

void stream_wait(TandemStream* stream, TandemEvent* event, TandemStatus* status) {
  std::lock_guard lock(queues);
  toy.stream_wait(stream, event, status);
}

TandemEvent* event_record(TandemStream* stream, TandemStatus* status) {
  std::lock_guard lock(queues);
  return toy.event_record(stream, status);
}

}  // namespace

// For the test: collectives that were computed, and communicators that there are.
extern "C" TANDEM_EXPORT_PLUGIN int communicating_computed() { return computed; }
extern "C" TANDEM_EXPORT_PLUGIN int communicating_communicators() { return communicators; }

extern "C" TANDEM_EXPORT_PLUGIN void tandem_plugin_init(const TandemHostApi* host,
                                                        TandemPluginApi* plugin,
                                                        TandemStatus* status) {
  toy_plugin_init(host, plugin, status);
  if (status->code != TANDEM_OK) return;
  toy = *plugin;
  plugin->size = sizeof(*plugin);
  plugin->name = "communicating";
  plugin->device_type = "TALKER";
  plugin->kernel_class = "talker";
  plugin->stream_enqueue = stream_enqueue;
  plugin->stream_wait = stream_wait;
  plugin->event_record = event_record;
  plugin->collective_supported = supported;
  plugin->communicator_create = create;
  plugin->communicator_destroy = destroy;
  plugin->communicator_enqueue = enqueue;
}
