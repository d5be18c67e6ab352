// A stand-in for NCCL: the part of it that the CUDA layer uses, computed on the host in the order
// of the streams that it is given. As with NCCL a member's work waits on its GPU until all members'
// has come, or its communicator is aborted.

#include "tests/cuda/nccl_stand_in.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

#include "tandem/core/half.h"
#include "tandem/device/cuda/internal/nccl_api.h"

#include "tests/cuda/library_stand_in.h"

namespace {

enum class Kind { kAllReduce, kBroadcast, kAllGather, kReduceScatter };

struct Call {
  Kind kind;
  const void* from;
  void* to;
  std::size_t count;
  ncclDataType_t type;
  ncclRedOp_t reduction;
  int root;
};

// The members of one collective that have come.
struct Meeting {
  std::map<int, Call> calls;  // by rank
  bool over = false;
};

struct Clique {
  explicit Clique(int count) : size(count) {}
  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<long long, Meeting> meetings;  // by number
  bool aborted = false;
  std::atomic<int> error{ncclSuccess};
};

struct Shared {
  std::atomic<long long> computed{0}, communicators{0}, waiting{0};
  std::atomic<bool> stalled{false};
  std::atomic<int> error{ncclSuccess};
};
Shared& shared() {
  static auto* all = new Shared;  // streams' threads may outlive static objects
  return *all;
}

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32: return 4;
    default: return 8;
  }
}

template <class T>
T combine(ncclRedOp_t reduction, T a, T b) {
  if constexpr (std::is_same_v<T, tandem::Half> || std::is_same_v<T, tandem::BFloat16>) {
    return T(combine(reduction, static_cast<float>(a), static_cast<float>(b)));
  } else {
    switch (reduction) {
      case ncclProd: return static_cast<T>(a * b);
      case ncclMax: return std::max(a, b);
      case ncclMin: return std::min(a, b);
      default: return static_cast<T>(a + b);
    }
  }
}

template <class T>
void reduce(const std::vector<const Call*>& calls, std::size_t count, void* result) {
  const Call& first = *calls.front();
  auto* to = static_cast<T*>(result);
  std::memcpy(to, first.from, count * sizeof(T));
  for (std::size_t member = 1; member < calls.size(); ++member) {
    const auto* from = static_cast<const T*>(calls[member]->from);
    for (std::size_t i = 0; i < count; ++i) to[i] = combine(first.reduction, to[i], from[i]);
  }
  if (first.reduction != ncclAvg) return;
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = static_cast<T>(static_cast<float>(to[i]) / static_cast<float>(calls.size()));
  }
}

void reduce(const std::vector<const Call*>& calls, std::size_t count, void* to) {
  switch (calls.front()->type) {
    case ncclInt8: return reduce<std::int8_t>(calls, count, to);
    case ncclUint8: return reduce<std::uint8_t>(calls, count, to);
    case ncclInt32: return reduce<std::int32_t>(calls, count, to);
    case ncclUint32: return reduce<std::uint32_t>(calls, count, to);
    case ncclInt64: return reduce<std::int64_t>(calls, count, to);
    case ncclUint64: return reduce<std::uint64_t>(calls, count, to);
    case ncclFloat16: return reduce<tandem::Half>(calls, count, to);
    case ncclBfloat16: return reduce<tandem::BFloat16>(calls, count, to);
    case ncclFloat32: return reduce<float>(calls, count, to);
    case ncclFloat64: return reduce<double>(calls, count, to);
  }
}

// False if the members ask for different things, or for memory that is not there.
bool agree(const std::vector<const Call*>& calls) {
  const Call& first = *calls.front();
  const std::size_t bytes = first.count * size_of(first.type);
  return std::all_of(calls.begin(), calls.end(), [&](const Call* call) {
    const bool sends = call->kind != Kind::kBroadcast;
    return call->kind == first.kind && call->count == first.count && call->type == first.type &&
           call->reduction == first.reduction && call->root == first.root &&
           stand_in::driver().is_device_memory(call->to, bytes) != 0 &&
           (!sends || stand_in::driver().is_device_memory(call->from, bytes) != 0);
  });
}

void compute(const std::vector<const Call*>& calls) {
  const Call& first = *calls.front();
  const std::size_t bytes = first.count * size_of(first.type);
  std::vector<char> result;
  switch (first.kind) {
    case Kind::kAllReduce:
      result.resize(bytes);
      reduce(calls, first.count, result.data());
      break;
    case Kind::kReduceScatter:
      result.resize(bytes * calls.size());
      reduce(calls, first.count * calls.size(), result.data());
      break;
    case Kind::kBroadcast: {
      const auto* from =
          static_cast<const char*>(calls[static_cast<std::size_t>(first.root)]->from);
      result.assign(from, from + bytes);
      break;
    }
    case Kind::kAllGather:
      for (const Call* call : calls) {
        const auto* from = static_cast<const char*>(call->from);
        result.insert(result.end(), from, from + bytes);
      }
      break;
  }
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    const bool scatters = first.kind == Kind::kReduceScatter;
    std::memcpy(calls[rank]->to, result.data() + (scatters ? rank * bytes : 0),
                scatters ? bytes : result.size());
  }
  ++shared().computed;
}

// On a thread of the member's stream.
void meet(Clique& clique, int rank, long long number, const Call& call) {
  std::unique_lock lock(clique.mutex);
  if (clique.aborted) return;
  Meeting& meeting = clique.meetings[number];
  meeting.calls.emplace(rank, call);
  ++shared().waiting;
  const auto complete = [&] {
    return !shared().stalled && meeting.calls.size() == static_cast<std::size_t>(clique.size);
  };
  if (complete()) {
    std::vector<const Call*> calls;
    for (const auto& [at, each] : meeting.calls) calls.push_back(&each);
    if (agree(calls)) {
      compute(calls);
    } else {
      clique.error = ncclInvalidUsage;
    }
    meeting.over = true;
    clique.changed.notify_all();
  }
  clique.changed.wait(lock, [&] { return clique.aborted || meeting.over; });
  --shared().waiting;
}

}  // namespace

struct ncclComm {
  ncclComm(std::shared_ptr<Clique> all, int place) : clique(std::move(all)), rank(place) {
    ++shared().communicators;
  }
  ~ncclComm() { --shared().communicators; }
  ncclComm(const ncclComm&) = delete;
  ncclComm& operator=(const ncclComm&) = delete;
  const std::shared_ptr<Clique> clique;
  const int rank;
  long long calls = 0;
};

namespace {

// What a thread's group has gathered.
struct Group {
  int depth = 0;
  std::vector<std::function<void()>> calls;
};
Group& group() {
  thread_local Group mine;
  return mine;
}

bool fails(const char* name) { return stand_in::driver().library_call(name) != 0; }

ncclResult_t add(const char* name, ncclComm_t communicator, CUstream_st* stream, const Call& call) {
  if (fails(name)) return ncclUnhandledCudaError;
  // Alone, several calls of one thread would wait for each other.
  if (group().depth == 0 || !stream) return ncclInvalidUsage;
  group().calls.push_back([communicator, stream, call] {
    stand_in::driver().add_kernel(
        stream, [clique = communicator->clique, rank = communicator->rank,
                 number = communicator->calls++, call] { meet(*clique, rank, number, call); });
  });
  return ncclSuccess;
}

}  // namespace

#define STAND_IN extern "C" __attribute__((visibility("default")))

STAND_IN ncclResult_t ncclGetVersion(int* version) {
  *version = 22703;
  return ncclSuccess;
}

STAND_IN const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclUnhandledCudaError: return "unhandled cuda error";
    case ncclInvalidUsage: return "invalid usage";
    case ncclRemoteError: return "remote process exited or there was a network error";
    default: return "an error";
  }
}

STAND_IN ncclResult_t ncclCommInitAll(ncclComm_t* communicators, int count, const int* devices) {
  if (fails("ncclCommInitAll")) return ncclUnhandledCudaError;
  for (int i = 0; i < count; ++i) {
    if (std::find(devices, devices + i, devices[i]) != devices + i) return ncclInvalidUsage;
  }
  const auto clique = std::make_shared<Clique>(count);
  for (int i = 0; i < count; ++i) communicators[i] = new ncclComm(clique, i);
  return ncclSuccess;
}

STAND_IN ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  {
    std::lock_guard lock(communicator->clique->mutex);
    communicator->clique->aborted = true;
    communicator->clique->changed.notify_all();
  }
  delete communicator;
  return ncclSuccess;
}

STAND_IN ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* error) {
  const int own = communicator->clique->error.load();
  *error = static_cast<ncclResult_t>(own != ncclSuccess ? own : shared().error.load());
  return ncclSuccess;
}

STAND_IN ncclResult_t ncclGroupStart() {
  if (fails("ncclGroupStart")) return ncclUnhandledCudaError;
  ++group().depth;
  return ncclSuccess;
}

STAND_IN ncclResult_t ncclGroupEnd() {
  if (group().depth == 0) return ncclInvalidUsage;
  std::vector<std::function<void()>> calls;
  if (--group().depth == 0) calls.swap(group().calls);
  const bool failed = fails("ncclGroupEnd");
  // What fails may have issued some.
  if (failed && !calls.empty()) calls.pop_back();
  for (const auto& call : calls) call();
  return failed ? ncclUnhandledCudaError : ncclSuccess;
}

STAND_IN ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count,
                                    ncclDataType_t type, ncclRedOp_t reduction,
                                    ncclComm_t communicator, CUstream_st* stream) {
  return add("ncclAllReduce", communicator, stream,
             {Kind::kAllReduce, from, to, count, type, reduction, 0});
}

STAND_IN ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count,
                                    ncclDataType_t type, int root, ncclComm_t communicator,
                                    CUstream_st* stream) {
  return add("ncclBroadcast", communicator, stream,
             {Kind::kBroadcast, from, to, count, type, ncclSum, root});
}

STAND_IN ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count_of_one,
                                    ncclDataType_t type, ncclComm_t communicator,
                                    CUstream_st* stream) {
  return add("ncclAllGather", communicator, stream,
             {Kind::kAllGather, from, to, count_of_one, type, ncclSum, 0});
}

STAND_IN ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count_of_result,
                                        ncclDataType_t type, ncclRedOp_t reduction,
                                        ncclComm_t communicator, CUstream_st* stream) {
  return add("ncclReduceScatter", communicator, stream,
             {Kind::kReduceScatter, from, to, count_of_result, type, reduction, 0});
}

STAND_IN const NcclStandInControl* nccl_stand_in_control() {
  static const NcclStandInControl control{
      .computed = [] { return shared().computed.load(); },
      .communicators = [] { return shared().communicators.load(); },
      .stall = [](int on) { shared().stalled = on != 0; },
      .waiting = [] { return shared().waiting.load(); },
      .report = [](int error) { shared().error = error; },
  };
  return &control;
}
