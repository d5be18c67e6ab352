#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/distribute/internal/client/parameter_pull.h"
#include "tandem/distribute/internal/parameters/parameter_server.h"
#include "tandem/distribute/internal/parameters/parameter_service.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/tensor_message.h"

namespace tandem::distribute {

/// Calls between servers, which stay on their way until the test delivers or loses them.
class Mail {
 public:
  void serve(const std::string& task, MethodTable* methods) { servers_[task] = methods; }
  Channel* channel(const std::string& to) {
    std::unique_ptr<Way>& way = ways_[to];
    if (!way) way = std::make_unique<Way>(*this, to);
    return way.get();
  }
  bool empty() const { return letters_.empty(); }
  std::size_t size() const { return letters_.size(); }
  void deliver_all() {
    while (!empty()) deliver();
  }
  void deliver() {
    const Letter letter = take();
    servers_.at(letter.to)->call(letter.method, letter.request, {}, letter.done);
  }
  /// Delivers everything, though the first copy of each message is lost, and the answer to the
  /// second.
  void deliver_third_copies() {
    std::map<std::string, int> copies;
    while (!empty()) {
      const int copy =
          ++copies[letters_.front().method + std::string(letters_.front().request.flat())];
      if (copy == 1) {
        lose();
      } else if (copy == 2) {
        deliver_in_vain();
      } else {
        deliver();
      }
    }
  }
  /// How many bytes are on their way.
  std::size_t num_bytes() const {
    std::size_t bytes = 0;
    for (const Letter& letter : letters_) bytes += letter.request.size();
    return bytes;
  }
  void lose() { take().done({Code::kUnavailable, "is lost"}, {}); }
  /// It arrives, but the answer is lost.
  void deliver_in_vain() {
    const Letter letter = take();
    servers_.at(letter.to)->call(letter.method, letter.request, {}, [](Status, Bytes) {});
    letter.done({Code::kUnavailable, "is lost"}, {});
  }

 private:
  struct Letter {
    std::string to;
    std::string method;
    Bytes request;
    ReplyDone done;
  };
  class Way final : public Channel {
   public:
    Way(Mail& mail, std::string to) : mail_(mail), to_(std::move(to)) {}
    void call(const char* method, Bytes request, const CallOptions&, ReplyDone done) override {
      mail_.letters_.push_back({to_, method, std::move(request), std::move(done)});
    }

   private:
    Mail& mail_;
    const std::string to_;
  };
  Letter take() {
    Letter letter = std::move(letters_.front());
    letters_.pop_front();
    return letter;
  }

  std::map<std::string, MethodTable*> servers_;
  std::map<std::string, std::unique_ptr<Way>> ways_;
  std::deque<Letter> letters_;
};

/// A way to a server on which calls arrive at once.
class Direct final : public Channel {
 public:
  explicit Direct(MethodTable& methods) : methods_(methods) {}
  void call(const char* method, Bytes request, const CallOptions&, ReplyDone done) override {
    methods_.call(method, std::move(request), {}, std::move(done));
  }

 private:
  MethodTable& methods_;
};

/// Three parameter servers; the test is their chief and their worker. The variables are those of
/// "a".
class ReplicationTest : public testing::Test {
 protected:
  struct Task {
    MethodTable methods;
    std::unique_ptr<ParameterServer> server;
  };
  /// Parts of states are so small that a vector of `size` floats takes many.
  explicit ReplicationTest(int replicas_to_aggregate = 0, std::int64_t size = 1,
                           const std::string& optimizer = "sgd")
      : size_(size) {
    for (const char* name : {"a", "b", "c"}) {
      Task& task = tasks_[name];
      ParameterServer::Options options;
      options.task = name;
      options.replicas = 2;
      options.sizes.max_part_bytes = 32;
      options.channel = [this](const std::string& other) { return mail.channel(other); };
      task.server = std::make_unique<ParameterServer>(options);
      task.server->add_to(task.methods);
      mail.serve(name, &task.methods);
    }
    proto::CreateParametersRequest request;
    request.home = "a";
    request.optimizer.make().name = optimizer;
    request.optimizer.make().learning_rate = 1;
    request.replicas_to_aggregate = replicas_to_aggregate;
    Bytes bytes = write_message(request);
    append_named_tensor_field(bytes, 1, "w", Array::zeros(DType::kFloat, Shape{size}));
    proto::CreateParametersResponse response;
    read(call("a", kCreateParameters, bytes), response);
    state_id_ = response.state_id;
  }

  struct Answer {
    Status status;
    Bytes reply;
  };
  using Pending = std::shared_ptr<std::optional<Answer>>;
  Pending call(const std::string& task, const char* method, Bytes request) {
    const auto pending = std::make_shared<std::optional<Answer>>();
    tasks_.at(task).methods.call(method, std::move(request), {},
                                 [pending](Status status, Bytes reply) {
                                   *pending = {std::move(status), std::move(reply)};
                                 });
    return pending;
  }
  template <class M>
  static void read(const Pending& pending, M& message) {
    ASSERT_TRUE(pending->has_value());
    ASSERT_TRUE((*pending)->status.ok()) << (*pending)->status.message;
    read_message((*pending)->reply, message);
  }

  /// Sends a view to the first task of the chain, or to `to`. Whether it is accepted.
  bool set_view(std::int64_t epoch, const std::vector<std::string>& chain, bool confirmed,
                const std::string& to = {}) {
    proto::SetViewRequest request;
    request.home = "a";
    request.view.make().epoch = epoch;
    request.view.make().chain = chain;
    request.confirmed = confirmed;
    proto::ReplicaResponse response;
    read(call(to.empty() ? chain.front() : to, kSetView, write_message(request)), response);
    return response.accepted;
  }
  /// A gradient of 1 for each element, as number `sequence`.
  Pending push(const std::string& task, std::int64_t sequence) {
    proto::PushRequest request;
    request.home = "a";
    request.state_id = state_id_;
    request.coordinator = "chief";
    request.sequence = sequence;
    request.term = term;
    Bytes bytes = write_message(request);
    Array gradient(DType::kFloat, Shape{size_});
    std::fill_n(gradient.data<float>(), size_, 1.0f);
    append_named_tensor_field(bytes, 6, "w", gradient);
    return call(task, kPushGradients, std::move(bytes));
  }
  static bool is_acknowledged(const Pending& pushed) {
    return pushed->has_value() && (*pushed)->status.ok();
  }
  /// All elements.
  std::vector<float> values(const std::string& task) {
    std::optional<PulledParameters> pulled;
    proto::PullRequest request;
    request.home = "a";
    request.state_id = state_id_;
    request.name = {"w"};
    const auto client = std::make_shared<ParameterClient>(
        std::vector<ParameterClient::Replica>{{task, direct(task)}});
    pull_parameters(client, write_message(request), nullptr,
                    [&](const Status& status, PulledParameters all) {
                      EXPECT_TRUE(status.ok()) << status.message;
                      pulled = std::move(all);
                    });
    if (!pulled || !pulled->values.contains("w")) return {};
    const auto elements = pulled->values.at("w").values<float>();
    return {elements.begin(), elements.end()};
  }
  /// The number of gradients that were applied, with sgd; -1 if that differs between elements.
  float value(const std::string& task) {
    const std::vector<float> all = values(task);
    const bool is_one = !all.empty() && std::count(all.begin(), all.end(), all[0]) == size_;
    return is_one ? -all[0] : -1;
  }
  /// Whether the task says that it cannot reach the next one.
  bool is_broken(const std::string& task) {
    const Pending described = call(task, kDescribeParameters, {});
    proto::DescribeResponse response;
    read(described, response);
    for (const proto::ReplicaState& state : response.state) {
      if (state.home == "a") return state.broken;
    }
    return false;
  }
  std::string pull_term(const std::string& task) {
    Bytes reply;
    return pull(task, reply).term;
  }

  Mail mail;
  std::string term;  // of pushes

 private:
  /// A view into `reply`.
  proto::PullResponse pull(const std::string& task, Bytes& reply) {
    proto::PullRequest request;
    request.home = "a";
    request.state_id = state_id_;
    request.name = {"w"};
    const Pending pulled = call(task, kPullParameters, write_message(request));
    proto::PullResponse response;
    read(pulled, response);
    if (pulled->has_value()) reply = (*pulled)->reply;
    return response;
  }
  Channel* direct(const std::string& task) {
    std::unique_ptr<Direct>& way = ways_[task];
    if (!way) way = std::make_unique<Direct>(tasks_.at(task).methods);
    return way.get();
  }

  const std::int64_t size_;
  std::map<std::string, Task> tasks_;
  std::map<std::string, std::unique_ptr<Direct>> ways_;
  std::string state_id_;
};

}  // namespace tandem::distribute
