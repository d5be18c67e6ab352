// Calls by local connections: what they carry, how they end, and what they do with a peer that
// breaks the rules.

#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <future>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/core/internal/sanitizers.h"
#include "tandem/distribute/internal/rpc/local/frame.h"
#include "tandem/distribute/internal/rpc/local/local_network.h"
#include "tandem/distribute/internal/rpc/local/local_server.h"
#include "tandem/distribute/internal/rpc/local/local_socket.h"
#include "tandem/distribute/internal/rpc/method_table.h"
#include "tandem/distribute/internal/wire/tensor_message.h"

namespace tandem::distribute {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Answer = std::pair<Status, Bytes>;

constexpr const char* kEcho = "/test/Echo";
constexpr const char* kHold = "/test/Hold";
constexpr const char* kKeep = "/test/Keep";
constexpr const char* kDie = "/test/Die";

// Stands for gRPC: whatever is not carried locally ends here.
class Elsewhere final : public Channel {
 public:
  void call(const char*, Bytes, const CallOptions&, ReplyDone done) override {
    ++calls;
    done({Code::kUnavailable, "elsewhere"}, {});
  }
  std::atomic<int> calls{0};
};

int new_port() {
  static std::atomic<int> last{0};
  return 100'000 + static_cast<int>(::getpid() % 10'000) * 1'000 + ++last;
}

// A server of methods that answer, wait, and keep what they get.
class Peer {
 public:
  explicit Peer(int port) : network({.memory_limit = std::size_t{256} << 20}) {
    methods.add(kEcho, [](Bytes request, const CallContext&, const ReplyDone& done) {
      done({}, std::move(request));
    });
    methods.add(kHold, [this](const Bytes&, const CallContext& context, const ReplyDone& done) {
      auto cancelled = std::make_shared<CancellationCallback>();
      *cancelled = CancellationCallback(context.cancellation, [this, done] {
        ++num_cancelled;
        done({Code::kCancelled, "cancelled there"}, {});
      });
      const MutexLock lock(mutex_);
      held_.push_back({done, std::move(cancelled)});
      came_.notify_all();
    });
    methods.add(kKeep, [this](Bytes request, const CallContext&, const ReplyDone& done) {
      {
        const MutexLock lock(mutex_);
        kept.push_back(std::move(request));
      }
      done({}, {});
    });
    methods.add(kDie, [](const Bytes&, const CallContext&, const ReplyDone&) { ::_exit(0); });
    methods.add("/test/Fail", [](const Bytes&, const CallContext&, const ReplyDone& done) {
      done({Code::kAborted, "why", std::string("de\0tails", 8)}, {});
    });
    server.emplace(methods, local_name_of_server("127.0.0.1:0", port), network.loop());
  }
  ~Peer() {
    release_held();
    server.reset();
  }

  void wait_for_held(std::size_t count) {
    MutexLock lock(mutex_);
    while (held_.size() < count) lock.wait(came_);
  }
  void release_held() {
    std::vector<Held> held;
    {
      const MutexLock lock(mutex_);
      held.swap(held_);
    }
    for (const Held& each : held) {
      each.cancelled->reset();
      each.done({}, {});
    }
  }

  LocalNetwork network;
  MethodTable methods;
  std::atomic<int> num_cancelled{0};
  std::vector<Bytes> kept;
  std::optional<LocalServer> server;

 private:
  struct Held {
    ReplyDone done;
    std::shared_ptr<CancellationCallback> cancelled;
  };
  Mutex mutex_;
  std::condition_variable came_;
  std::vector<Held> held_ TANDEM_GUARDED_BY(mutex_);
};

class LocalTransportTest : public testing::Test {
 protected:
  std::shared_ptr<Channel> channel() {
    return network.channel("127.0.0.1:" + std::to_string(port), elsewhere);
  }
  static std::future<Answer> begin(Channel& channel, const char* method, Bytes request,
                                   const CallOptions& options = {}) {
    auto answer = std::make_shared<std::promise<Answer>>();
    channel.call(method, std::move(request), options, [answer](Status status, Bytes reply) {
      answer->set_value({std::move(status), std::move(reply)});
    });
    return answer->get_future();
  }
  // Both ways of calling.
  static std::vector<Answer> both(Channel& channel, const char* method, const Bytes& request,
                                  const CallOptions& options = {}) {
    std::vector<Answer> answers;
    answers.push_back(begin(channel, method, request, options).get());
    answers.push_back(channel.call_and_wait(method, request, options));
    return answers;
  }

  const int port = new_port();
  const std::shared_ptr<Elsewhere> elsewhere = std::make_shared<Elsewhere>();
  LocalNetwork network{{.memory_limit = std::size_t{64} << 20}};
};

constexpr FrameHeader kRegionWithoutDescriptor{
    .kind = FrameHeader::kRegion, .number = 4096, .region = 1};

std::string text_of(std::size_t size) {
  std::string text(size, 'x');
  for (std::size_t i = 0; i < size; i += 101) text[i] = static_cast<char>('a' + i % 26);
  return text;
}

// Sizes about the limits of buffers and of shared memory, and one that takes the socket because
// memory is short.
TEST_F(LocalTransportTest, MessagesOfAllSizesComeBack) {
  Peer peer(port);
  const auto to = channel();
  for (const std::size_t size :
       {0, 1, 1000, 16'383, 16'384, 65'536, 300'000, 5'000'000, 70'000'000}) {
    const std::string text = text_of(size);
    for (auto& [status, reply] : both(*to, kEcho, Bytes(text))) {
      ASSERT_TRUE(status.ok()) << status.message;
      EXPECT_TRUE(reply.flat() == text) << size;
    }
  }
  EXPECT_EQ(elsewhere->calls, 0);
  EXPECT_EQ(peer.network.loop()->num_connections(), 2u);
}

TEST_F(LocalTransportTest, ALargeTensorIsReadWithoutACopy) {
  Peer peer(port);
  Array numbers(DType::kFloat, Shape{100'000});
  std::iota(numbers.data<float>(), numbers.data<float>() + 100'000, 0.0f);
  Bytes request(std::string("begin"));
  request.append(write_tensor(numbers));
  for (auto& [status, reply] : both(*channel(), kEcho, request)) {
    ASSERT_TRUE(status.ok());
    const std::string_view bytes = reply.flat().substr(5);
    const Array tensor = read_tensor(bytes, reply.owner());
    const auto* data = static_cast<const char*>(tensor.raw_data());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 64, 0u);
    EXPECT_TRUE(data > bytes.data() && data < bytes.data() + bytes.size());
    reply = {};  // the tensor keeps the memory
    EXPECT_EQ(tensor.values<float>()[99'999], 99'999.0f);
  }
}

TEST_F(LocalTransportTest, ErrorsArriveWhole) {
  Peer peer(port);
  for (const auto& [status, reply] : both(*channel(), "/test/Fail", {})) {
    EXPECT_EQ(status.code, Code::kAborted);
    EXPECT_EQ(status.message, "why");
    EXPECT_EQ(status.details, std::string("de\0tails", 8));
  }
  for (const auto& [status, reply] : both(*channel(), "/test/Unknown", {}))
    EXPECT_EQ(status.code, Code::kUnimplemented);
  EXPECT_EQ(peer.methods.unknown_calls().at("/test/Unknown"), 2);
}

TEST_F(LocalTransportTest, WhereNoServerListensCallsGoElsewhere) {
  for (const auto& [status, reply] : both(*channel(), kEcho, {}))
    EXPECT_EQ(status.message, "elsewhere");
  EXPECT_EQ(elsewhere->calls, 2);
  EXPECT_EQ(network.channel("h1:2222", elsewhere), elsewhere);
  EXPECT_EQ(network.channel("192.0.2.1:2222", elsewhere), elsewhere);  // of documentation
}

TEST_F(LocalTransportTest, DeadlinesAndCancellationsReachBothSides) {
  Peer peer(port);
  const auto to = channel();
  for (const auto& [status, reply] : both(*to, kHold, {}, {.timeout = milliseconds(20)})) {
    EXPECT_EQ(status.code, Code::kDeadlineExceeded);
    EXPECT_EQ(status.message, "Deadline Exceeded");
  }
  const auto stop = std::make_shared<Cancellation>();
  auto first = begin(*to, kHold, {}, {.cancellation = stop});
  auto second = std::async(std::launch::async,
                           [&] { return to->call_and_wait(kHold, {}, {.cancellation = stop}); });
  peer.wait_for_held(4);
  stop->cancel();
  EXPECT_EQ(first.get().first.code, Code::kCancelled);
  EXPECT_EQ(second.get().first.code, Code::kCancelled);
  while (peer.num_cancelled < 4) std::this_thread::yield();
}

TEST_F(LocalTransportTest, ACallThatIsOverBeforeItBeginsIsNotSent) {
  Peer peer(port);
  const auto to = channel();
  const auto early = std::make_shared<Cancellation>();
  early->cancel();
  for (const auto& [status, reply] : both(*to, kKeep, {}, {.cancellation = early})) {
    EXPECT_EQ(status.code, Code::kCancelled);
    EXPECT_EQ(status.message, "CANCELLED");
  }
  for (const auto& [status, reply] : both(*to, kKeep, {}, {.timeout = milliseconds(0)})) {
    EXPECT_EQ(status.code, Code::kDeadlineExceeded);
    EXPECT_EQ(status.message, "Deadline Exceeded");
  }
  for (const auto& [status, reply] : both(*to, kEcho, {})) EXPECT_TRUE(status.ok());
  EXPECT_EQ(peer.network.loop()->num_calls(), 2u);
  EXPECT_EQ(elsewhere->calls, 0);
}

TEST_F(LocalTransportTest, AServerCountsTheCallsOfOthersAndItsOwnOnce) {
  Peer peer(port);
  const auto own = peer.network.channel("127.0.0.1:" + std::to_string(port), elsewhere);
  for (const auto& [status, reply] : both(*own, kEcho, {})) EXPECT_TRUE(status.ok());
  EXPECT_EQ(peer.network.loop()->num_calls(), 2u);
  for (const auto& [status, reply] : both(*channel(), kEcho, {})) EXPECT_TRUE(status.ok());
  EXPECT_EQ(peer.network.loop()->num_calls(), 4u);
}

TEST_F(LocalTransportTest, CallersBeyondALimitShareAConnection) {
  Peer peer(port);
  const auto to = channel();
  std::vector<std::future<Answer>> answers;
  for (int i = 0; i < 80; ++i) {
    answers.push_back(
        std::async(std::launch::async, [&] { return to->call_and_wait(kHold, {}, {}); }));
  }
  peer.wait_for_held(80);
  EXPECT_EQ(peer.network.loop()->num_connections(), 65u);
  peer.release_held();
  for (auto& answer : answers) EXPECT_TRUE(answer.get().first.ok());
  EXPECT_EQ(elsewhere->calls, 0);
}

TEST(LocalLoopTest, WhatIsPostedRunsThoughTheLoopEnds) {
  LocalLoop loop(0);
  std::atomic<int> runs{0};
  for (int i = 0; i < 1'000; ++i) {
    loop.post([&] {
      ++runs;
      loop.post([&] { ++runs; });
    });
  }
  loop.stop();
  EXPECT_EQ(runs, 2'000);
  loop.post([&] { ++runs; });
  EXPECT_EQ(runs, 2'001);
}

TEST_F(LocalTransportTest, TheEndOfANetworkCancelsItsCalls) {
  Peer peer(port);
  auto ending = std::make_unique<LocalNetwork>(LocalOptions{});
  const auto to = ending->channel("localhost:" + std::to_string(port), elsewhere);
  auto first = begin(*to, kHold, {});
  auto second = std::async(std::launch::async, [&] { return to->call_and_wait(kHold, {}, {}); });
  peer.wait_for_held(2);
  ending.reset();
  EXPECT_EQ(first.get().first.code, Code::kCancelled);
  EXPECT_EQ(second.get().first.code, Code::kCancelled);
  EXPECT_EQ(begin(*to, kEcho, {}).get().first.message, "elsewhere");
}

TEST_F(LocalTransportTest, ADrainingServerEndsItsCallsAndRefusesOthers) {
  auto peer = std::make_unique<Peer>(port);
  const auto to = channel();
  auto open = begin(*to, kHold, {});
  peer->wait_for_held(1);
  peer->server->stop_accepting();
  for (const auto& [status, reply] : both(*to, kEcho, {}, {.wait_for_ready = true}))
    EXPECT_EQ(status.message, "elsewhere");
  peer->release_held();
  peer->server->drain(seconds(10));
  EXPECT_TRUE(open.get().first.ok());
  peer.reset();
  // The next server of the port is found by the same channel.
  const Peer next(port);
  while (!to->call_and_wait(kEcho, {}, {}).first.ok())
    std::this_thread::sleep_for(milliseconds(10));
  EXPECT_TRUE(begin(*to, kEcho, {}).get().first.ok());
}

TEST_F(LocalTransportTest, DrainWithoutPatienceCancels) {
  Peer peer(port);
  auto open = begin(*channel(), kHold, {});
  peer.wait_for_held(1);
  peer.server->drain(milliseconds(0));
  EXPECT_EQ(open.get().first.message, "cancelled there");
  EXPECT_EQ(peer.num_cancelled, 1);
}

std::size_t num_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST_F(LocalTransportTest, WithoutALocalServerNothingIsMade) {
  const auto to = channel();
  const std::size_t before = num_descriptors();
  for (const auto& [status, reply] : both(*to, kEcho, {})) EXPECT_EQ(status.message, "elsewhere");
  EXPECT_EQ(num_descriptors(), before);
}

// No further descriptors than the next one.
class OneDescriptorLeft {
 public:
  OneDescriptorLeft() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const Descriptor next(::memfd_create("next", MFD_CLOEXEC));
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(next.number()) + 1;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~OneDescriptorLeft() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  OneDescriptorLeft(const OneDescriptorLeft&) = delete;
  OneDescriptorLeft& operator=(const OneDescriptorLeft&) = delete;

 private:
  rlimit before_{};
};

TEST_F(LocalTransportTest, AClientWithoutDescriptorsForALoopGoesElsewhere) {
#if defined(__has_feature)
#if __has_feature(undefined_behavior_sanitizer)
  GTEST_SKIP() << "the sanitizer looks at objects' types through a pipe";
#endif
#endif
  Peer peer(port);
  const auto to = channel();
  const OneDescriptorLeft limit;
  for (const auto& [status, reply] : both(*to, kEcho, {})) EXPECT_EQ(status.message, "elsewhere");
}

// A server that reads a little of what comes, sends `bytes` and hangs up.
class Impostor {
 public:
  Impostor(int port, std::string bytes)
      : socket_(listen_at(local_name_of_server("127.0.0.1:0", port))), thread_([this, bytes] {
          for (;;) {
            pollfd wait{socket_.number(), POLLIN, 0};
            ::poll(&wait, 1, -1);
            const Descriptor client = accept_from(socket_);
            if (stops_) return;
            if (!client.is_open()) continue;
            wait.fd = client.number();
            ::poll(&wait, 1, -1);
            std::array<char, 16> some{};
            static_cast<void>(::recv(client.number(), some.data(), some.size(), 0));
            ::send(client.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
          }
        }) {}
  ~Impostor() {
    stops_ = true;
    ::shutdown(socket_.number(), SHUT_RDWR);
    thread_.join();
  }

 private:
  const Descriptor socket_;
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

// Each of these would fail again and again if it went on with local connections.
TEST_F(LocalTransportTest, AfterAServerThatCannotBeUnderstoodCallsGoElsewhere) {
  const std::string bad =
      std::string(reinterpret_cast<const char*>(&kRegionWithoutDescriptor), sizeof(FrameHeader));
  for (const std::string& bytes : {std::string(), bad}) {
    const Impostor impostor(port, bytes);
    for (const bool waits : {false, true}) {
      const auto call = [waits](Channel& to) {
        return waits ? to.call_and_wait(kEcho, {}, {}).first : begin(to, kEcho, {}).get().first;
      };
      std::chrono::steady_clock::duration took{};
      do {  // unless the pause is over before it is looked at
        const auto to = channel();
        const auto before = std::chrono::steady_clock::now();
        EXPECT_EQ(call(*to).code, Code::kUnavailable);
        const Status second = call(*to);
        took = std::chrono::steady_clock::now() - before;
        if (took < milliseconds(900)) {
          EXPECT_EQ(second.message, "elsewhere");
        }
      } while (took >= milliseconds(900));
    }
  }
}

TEST_F(LocalTransportTest, ARequestThatWasNotSentWholeGoesElsewhere) {
  const Impostor impostor(port, {});
  LocalNetwork inline_only{{.memory_limit = 0}};
  const auto to = inline_only.channel("127.0.0.1:" + std::to_string(port), elsewhere);
  EXPECT_EQ(to->call_and_wait(kKeep, Bytes(text_of(50'000'000)), {}).first.message, "elsewhere");
}

// ThreadSanitizer does not follow a child of a process with threads.
#if !TANDEM_THREAD_SANITIZER

// A server in a process of its own, which a test may kill.
class Process {
 public:
  explicit Process(int port) {
    std::array<int, 2> ready{};
    if (::pipe(ready.data()) != 0) throw InternalError("no pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      const Peer peer(port);
      static_cast<void>(::write(ready[1], "x", 1) + 0);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char byte = 0;
    static_cast<void>(::read(ready[0], &byte, 1) + 0);
    ::close(ready[0]);
  }
  ~Process() { kill(); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }
  void stop() const {
    ::kill(pid_, SIGSTOP);
    ::waitpid(pid_, nullptr, WUNTRACED);
  }

 private:
  pid_t pid_ = -1;
};

TEST_F(LocalTransportTest, APeerThatDiesEndsItsCallsAndComesBack) {
  const auto to = channel();
  for (int round = 0; round < 3; ++round) {
    Process peer(port);
    Answer answer;
    do {  // for a moment the channel may remember that no server listened
      answer = to->call_and_wait(kEcho, Bytes(text_of(100'000)), {});
    } while (answer.first.message == "elsewhere");
    ASSERT_TRUE(answer.first.ok()) << answer.first.message;
    auto first = begin(*to, kHold, Bytes(text_of(100'000)));
    auto second = std::async(std::launch::async, [&] { return to->call_and_wait(kHold, {}, {}); });
    if (round == 1) {
      EXPECT_EQ(begin(*to, kDie, {}).get().first.code, Code::kUnavailable);
    } else {
      std::this_thread::sleep_for(milliseconds(20));
      peer.kill();
    }
    EXPECT_EQ(first.get().first.code, Code::kUnavailable);
    EXPECT_EQ(second.get().first.code, Code::kUnavailable);
    EXPECT_EQ(answer.second.flat(), text_of(100'000));  // outlives who sent it
    for (const auto& [status, reply] : both(*to, kEcho, {})) EXPECT_EQ(status.message, "elsewhere");
  }
}

TEST_F(LocalTransportTest, AStoppedPeerLetsDeadlinesPass) {
  const Process peer(port);
  const auto to = channel();
  ASSERT_TRUE(to->call_and_wait(kEcho, {}, {}).first.ok());
  peer.stop();
  const std::string large = text_of(1'000'000);
  for (int i = 0; i < 3; ++i) {
    for (const auto& [status, reply] :
         both(*to, kEcho, Bytes(large), {.timeout = milliseconds(20)}))
      EXPECT_EQ(status.code, Code::kDeadlineExceeded);
  }
}

// A child that was forked holds copies of all descriptors.
TEST_F(LocalTransportTest, AServerThatStopsIsNotKeptListeningByAChild) {
  Peer peer(port);
  const std::string name = local_name_of_server("127.0.0.1:0", port);
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  EXPECT_TRUE(connect_to(name).is_open());
  peer.server->stop_accepting();
  EXPECT_FALSE(connect_to(name).is_open());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

#endif

// Memory that a receiver keeps is not used again; once there is no more, messages take the socket.
TEST_F(LocalTransportTest, SharedMemoryIsBoundedAndComesBack) {
  Peer peer(port);
  const auto to = channel();
  const std::string text = text_of(10'000'000);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 12; ++i) ASSERT_TRUE(begin(*to, kKeep, Bytes(text)).get().first.ok());
    EXPECT_LE(network.loop()->memory().used(), std::size_t{64} << 20);
    EXPECT_GT(network.loop()->memory().used(), std::size_t{40} << 20);
    for (Bytes& kept : peer.kept) EXPECT_TRUE(kept.flat() == text);
    peer.kept.clear();
  }
}

TEST_F(LocalTransportTest, ManyThreadsAtOnce) {
  Peer peer(port);
  const auto to = channel();
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (std::size_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 50; ++i) {
        const std::string text = text_of(t * 9'000 + i * 17);
        for (auto& [status, reply] : both(*to, kEcho, Bytes(text)))
          right += status.ok() && reply.flat() == text;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 800);
  EXPECT_EQ(elsewhere->calls, 0);
}

std::string frame(const FrameHeader& head, const std::string& text = {}) {
  return std::string(reinterpret_cast<const char*>(&head), sizeof(head)) + text;
}

// Bytes that a server gets from a process that is no client of ours. False if it hung up.
bool is_kept_by(const Descriptor& socket, const std::string& bytes, int descriptor = -1) {
  iovec vector{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(part), &descriptor, sizeof(int));
  }
  if (!bytes.empty() && ::sendmsg(socket.number(), &message, MSG_NOSIGNAL) < 0) return false;
  // A call that follows is answered if the connection lives.
  const std::string call = frame({.kind = FrameHeader::kCall, .call = 77, .text_size = 10}, kEcho);
  if (::send(socket.number(), call.data(), call.size(), MSG_NOSIGNAL) < 0) return false;
  pollfd wait{socket.number(), POLLIN, 0};
  ::poll(&wait, 1, 10'000);
  char byte = 0;
  return ::recv(socket.number(), &byte, 1, 0) == 1;
}

TEST_F(LocalTransportTest, AServerHangsUpOnWhoBreaksTheRules) {
  Peer peer(port);
  const std::string name = local_name_of_server("127.0.0.1:0", port);
  EXPECT_TRUE(is_kept_by(connect_to(name), frame({.kind = FrameHeader::kCancel, .call = 5})));
  const auto refused = [&](const FrameHeader& head, int descriptor = -1) {
    EXPECT_FALSE(is_kept_by(connect_to(name), frame(head), descriptor)) << head.kind;
  };
  EXPECT_FALSE(is_kept_by(connect_to(name), std::string(48, 'x')));
  refused({.kind = 99});
  refused({.kind = FrameHeader::kCall, .text_size = 0xffffffff});
  refused({.kind = FrameHeader::kReply, .number = 17});
  refused({.kind = FrameHeader::kCall, .body_size = 10, .region = 3, .offset = 64});
  refused({.kind = FrameHeader::kForget, .region = 3});
  refused({.kind = FrameHeader::kRegion, .number = 4096, .region = 1});  // without a descriptor

  Descriptor shared;
  const auto region = SharedRegion::create(4096, shared);
  const auto announced = [&](const FrameHeader& call) {
    return is_kept_by(
        connect_to(name),
        frame({.kind = FrameHeader::kRegion, .number = 4096, .region = 1}) + frame(call),
        shared.number());
  };
  EXPECT_TRUE(
      announced({.kind = FrameHeader::kCall, .body_size = 4032, .region = 1, .offset = 64}));
  EXPECT_FALSE(
      announced({.kind = FrameHeader::kCall, .body_size = 4033, .region = 1, .offset = 64}));
  EXPECT_FALSE(announced({.kind = FrameHeader::kCall, .body_size = 1, .region = 1, .offset = 0}));
  EXPECT_FALSE(
      announced({.kind = FrameHeader::kCall, .body_size = ~0ull, .region = 1, .offset = 4096}));
  refused({.kind = FrameHeader::kRegion, .number = 8192, .region = 1}, shared.number());
  // Memory that its sender could make smaller would be a trap.
  const Descriptor unsealed(::memfd_create("unsealed", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(unsealed.number(), 4096), 0);
  refused({.kind = FrameHeader::kRegion, .number = 4096, .region = 1}, unsealed.number());

  EXPECT_TRUE(channel()->call_and_wait(kEcho, {}, {}).first.ok());  // the server goes on
}

TEST_F(LocalTransportTest, ANumberOfACallInProgressIsRefusedToAnother) {
  Peer peer(port);
  const std::string hold = frame({.kind = FrameHeader::kCall, .call = 5, .text_size = 10}, kHold);
  const Descriptor socket = connect_to(local_name_of_server("127.0.0.1:0", port));
  EXPECT_TRUE(is_kept_by(socket, hold + hold));
  peer.wait_for_held(1);
  peer.server->drain(milliseconds(0));  // cancels all calls, and waits for them
  EXPECT_EQ(peer.num_cancelled, 1);
}

// A connection that is made without a look at whose server it is.
Descriptor connect_blindly(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const auto* any = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(socket.number(), any, size) != 0) return {};
  return socket;
}

TEST_F(LocalTransportTest, AnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  Peer peer(port);
  const std::string name = local_name_of_server("127.0.0.1:0", port);
  EXPECT_TRUE(connect_to(name).is_open());
  EXPECT_TRUE(is_kept_by(connect_blindly(name), ""));
  const pid_t other = ::fork();
  if (other == 0) {
    if (::setuid(65534) != 0) ::_exit(3);
    if (connect_to(name).is_open()) ::_exit(2);  // a client sees whose server it is
    ::_exit(is_kept_by(connect_blindly(name), "") ? 1 : 0);
  }
  int status = 0;
  ::waitpid(other, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(FrameReaderTest, FramesComeInPiecesOfAnySize) {
  std::string stream;
  for (std::size_t i = 0; i < 40; ++i) {
    const std::string body = text_of(i * i * i * 3);
    stream +=
        frame({.kind = FrameHeader::kCall, .call = i, .body_size = body.size(), .text_size = 6},
              "method" + body);
  }
  for (const std::size_t step :
       {std::size_t{1}, std::size_t{47}, std::size_t{60'000}, stream.size()}) {
    FrameReader reader;
    Frame read;
    std::size_t count = 0;
    for (std::size_t at = 0; at < stream.size();) {
      const std::span<char> space = reader.space();
      ASSERT_FALSE(space.empty());
      const std::size_t size = std::min({step, space.size(), stream.size() - at});
      std::memcpy(space.data(), stream.data() + at, size);
      reader.received(size);
      at += size;
      while (reader.next(read)) {
        ASSERT_EQ(read.head.call, count);
        ASSERT_TRUE(read.body.flat() == text_of(count * count * count * 3));
        ++count;
      }
    }
    EXPECT_EQ(count, 40u);
  }
}

}  // namespace
}  // namespace tandem::distribute
