#include "tests/simulation/network.h"

#include "tandem/core/error.h"

#include "tests/simulation/message_text.h"

namespace tandem::simulation {

using distribute::Bytes;
using distribute::CallOptions;
using distribute::ReplyDone;
using distribute::Status;

namespace {

constexpr double kNoticedAfter = 1.0;  // a lost message, by its sender
constexpr double kMeanDelay = 0.01;
constexpr double kAskAgain = 0.05;  // where a call waits for its peer

double seconds_of(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

class Network::Way final : public distribute::Channel {
 public:
  Way(Network& network, std::string from, std::string to)
      : network_(network), from_(std::move(from)), to_(std::move(to)) {}
  void call(const char* method, Bytes request, const CallOptions& options,
            ReplyDone done) override {
    network_.begin(std::make_shared<Call>(Call{network_.next_id_++, from_, to_, method,
                                               std::string(request.flat()), options.cancellation,
                                               std::move(done)}),
                   options);
  }

 private:
  Network& network_;
  const std::string from_, to_;
};

distribute::Channel* Network::channel(const std::string& from, const std::string& to) {
  auto& way = ways_[{from, to}];
  if (!way) way = std::make_unique<Way>(*this, from, to);
  return way.get();
}

void Network::start(const std::string& node, std::shared_ptr<distribute::MethodTable> service) {
  Node& started = nodes_[node];
  started.service = std::move(service);
  ++started.life;
}

void Network::stop(const std::string& node) {
  Node& stopped = nodes_[node];
  stopped.service = nullptr;
  stopped.paused = false;
  stopped.arrived.clear();
  ++stopped.life;
  for (auto& [id, call] : std::exchange(stopped.open, {})) {
    clock_.after(kMeanDelay, [this, call = call] {
      finish(call, {Code::kUnavailable, "went down"}, {});
    });
  }
}

void Network::pause(const std::string& node) { nodes_[node].paused = true; }

void Network::resume(const std::string& node) {
  Node& resumed = nodes_[node];
  resumed.paused = false;
  for (auto& event : std::exchange(resumed.arrived, {})) clock_.after(0, std::move(event));
}

bool Network::is_cut(const std::string& one, const std::string& other) const {
  return cuts_.contains({one, other}) || cuts_.contains({other, one});
}

void Network::note(const Call& call, const std::string& what) const {
  if (trace_)
    trace_(cat("  #", call.id, " ", short_name(call.from), " > ", short_name(call.to), " ", what));
}

void Network::begin(const std::shared_ptr<Call>& call, const CallOptions& options) {
  if (options.timeout) {
    clock_.after(seconds_of(*options.timeout), [this, call] {
      finish(call, {Code::kDeadlineExceeded, "too late"}, {});
    });
  }
  if (!nodes_[call->to].service) {
    if (options.wait_for_ready && !(call->cancellation && call->cancellation->cancelled())) {
      clock_.after(kAskAgain, [this, call, options] {
        if (call->done) begin(call, {.cancellation = options.cancellation, .wait_for_ready = true});
      });
    } else {
      clock_.after(kMeanDelay, [this, call] { finish(call, {Code::kUnavailable, "is down"}, {}); });
    }
    return;
  }
  if (trace_) note(*call, request_text(call->method, call->request));
  const int copies = clock_.chance(loss_) ? 0 : clock_.chance(loss_) ? 2 : 1;
  if (copies == 0 || is_cut(call->from, call->to)) {
    note(*call, "is lost");
    clock_.after(kNoticedAfter, [this, call] {
      finish(call, {Code::kUnavailable, "is lost"}, {});
    });
    return;
  }
  for (int c = 0; c < copies; ++c) {
    if (c == 0) {
      clock_.after(clock_.seconds(kMeanDelay), [this, call] { deliver(call); });
      continue;
    }
    // A second copy comes when the caller does not wait any more.
    const auto copy = std::make_shared<Call>(*call);
    copy->id = next_id_++;
    copy->context = {};
    note(*copy, cat("will repeat #", call->id));
    copy->done = [](const Status&, const Bytes&) {};
    clock_.after(clock_.seconds(kNoticedAfter), [this, call, copy] {
      if (!call->done) deliver(copy);
    });
  }
}

void Network::deliver(const std::shared_ptr<Call>& call) {
  Node& node = nodes_[call->to];
  if (!node.service) return finish(call, {Code::kUnavailable, "went down"}, {});
  node.open[call->id] = call;
  if (node.paused) {
    node.arrived.push_back([this, call] { deliver(call); });
    return;
  }
  note(*call, "arrives");
  const auto service = node.service;  // a call may outlive the node
  service->call(call->method, Bytes(call->request), call->context,
                [this, call, life = node.life](const Status& status, const Bytes& reply) {
                  answer(call, life, status, reply);
                });
}

void Network::answer(const std::shared_ptr<Call>& call, int life, const Status& status,
                     const Bytes& reply) {
  if (trace_) note(*call, cat("is answered: ", reply_text(call->method, status, reply)));
  if (life != nodes_[call->to].life || clock_.chance(loss_) || is_cut(call->from, call->to)) {
    note(*call, "answer is lost");
    clock_.after(kNoticedAfter, [this, call] {
      finish(call, {Code::kUnavailable, "is lost"}, {});
    });
    return;
  }
  clock_.after(clock_.seconds(kMeanDelay),
               [this, call, status, reply] { finish(call, status, reply); });
}

void Network::finish(const std::shared_ptr<Call>& call, Status status, Bytes reply) {
  nodes_[call->to].open.erase(call->id);
  if (!call->done) return;
  call->context.cancellation->cancel();  // the caller does not wait any more
  if (call->cancellation && call->cancellation->cancelled()) {
    status = {Code::kCancelled, "is cancelled"};
    reply = {};
  }
  std::exchange(call->done, nullptr)(std::move(status), std::move(reply));
}

}  // namespace tandem::simulation
