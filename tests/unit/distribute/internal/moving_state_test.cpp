// How the state of a parameter server comes to a replica: in parts, while updates are applied.
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/distribute/internal/client/create_parameters.h"
#include "tandem/fs/record_file.h"

#include "tests/unit/distribute/internal/replicated_servers.h"

namespace tandem::distribute {
namespace {

constexpr std::int64_t kSize = 50;  // elements, of which messages have 8

class MovingStateTest : public ReplicationTest {
 protected:
  MovingStateTest() : ReplicationTest(0, kSize) {}
};

TEST_F(MovingStateTest, UpdatesThatAreAppliedMeanwhileAreThereOnce) {
  ASSERT_TRUE(set_view(1, {"a", "b"}, true));
  int pushed = 0;
  for (; !mail.empty() && pushed < 1000; ++pushed) {
    push("a", pushed);
    mail.deliver();
    if (!mail.empty()) mail.deliver();
  }
  ASSERT_GT(pushed, 5);
  mail.deliver_all();
  EXPECT_EQ(value("a"), pushed);
  ASSERT_TRUE(set_view(2, {"b"}, true));
  EXPECT_EQ(value("b"), pushed);
}

TEST_F(MovingStateTest, MessagesThatAreLostOnTheWayAreSentAgain) {
  ASSERT_TRUE(set_view(1, {"a", "b"}, true));
  mail.deliver();  // "b" is to be a replica
  const auto first = push("a", 0);
  const auto second = push("a", 1);
  mail.deliver_third_copies();
  EXPECT_TRUE(is_acknowledged(first));
  EXPECT_TRUE(is_acknowledged(second));
  ASSERT_TRUE(set_view(2, {"b"}, true));
  EXPECT_EQ(value("b"), 2);
}

// "b" has an update, but not yet the part of the state before it: that is no copy.
TEST_F(MovingStateTest, NothingIsAcknowledgedBeforeTheWholeStateIsThere) {
  ASSERT_TRUE(set_view(1, {"a", "b"}, true));
  mail.deliver();
  const auto pushed = push("a", 0);
  for (int messages = 0; !mail.empty(); ++messages) {
    EXPECT_FALSE(is_acknowledged(pushed)) << messages;
    mail.deliver();
  }
  EXPECT_TRUE(is_acknowledged(pushed));
}

TEST_F(MovingStateTest, AStateThatIsNotWholeIsNotServed) {
  ASSERT_TRUE(set_view(1, {"a", "b"}, true));
  for (int m = 0; m < 4; ++m) mail.deliver();
  EXPECT_FALSE(set_view(2, {"b"}, true));
  EXPECT_FALSE(is_acknowledged(push("b", 0)));
}

// "b" has a part of the state in view 1 when it gets the state in view 3 from another task.
TEST_F(MovingStateTest, ALaterViewEndsATransfer) {
  ASSERT_TRUE(set_view(1, {"a", "c"}, true));
  mail.deliver_all();
  ASSERT_TRUE(set_view(2, {"a", "b"}, true));
  for (int m = 0; m < 4; ++m) mail.deliver();
  ASSERT_TRUE(set_view(3, {"c", "b"}, true));
  const auto pushed = push("c", 0);
  mail.deliver_all();  // what "a" has sent is on its way, too
  EXPECT_TRUE(is_acknowledged(pushed));
  ASSERT_TRUE(set_view(4, {"b"}, true));
  EXPECT_EQ(value("b"), 1);
}

TEST_F(MovingStateTest, AReplicaThatHasTheStateIsNotSentIt) {
  ASSERT_TRUE(set_view(1, {"a", "b"}, true));
  mail.deliver_all();
  const auto first = push("a", 0);
  mail.deliver_all();
  ASSERT_TRUE(is_acknowledged(first));
  ASSERT_TRUE(set_view(2, {"a", "b"}, true));
  std::size_t bytes = 0;
  while (!mail.empty()) {
    bytes += mail.num_bytes();
    mail.deliver();
  }
  EXPECT_LT(bytes, kSize * sizeof(float));
  const auto second = push("a", 1);
  mail.deliver_all();
  EXPECT_TRUE(is_acknowledged(second));
  ASSERT_TRUE(set_view(3, {"b"}, true));
  EXPECT_EQ(value("b"), 2);
}

// An update is lost with the view.
TEST_F(MovingStateTest, AReplicaGetsTheUpdatesThatItLacks) {
  ASSERT_TRUE(set_view(1, {"a", "b"}, true));
  mail.deliver_all();
  const auto first = push("a", 0);
  ASSERT_TRUE(set_view(2, {"a", "b"}, true));
  mail.lose();  // the update
  const auto second = push("a", 1);
  mail.deliver_all();
  EXPECT_TRUE(is_acknowledged(first));
  EXPECT_TRUE(is_acknowledged(second));
  ASSERT_TRUE(set_view(3, {"b"}, true));
  EXPECT_EQ(value("b"), 2);
}

// "a" and "b" have each applied an update that the other one has not, as the same number.
TEST_F(MovingStateTest, StatesThatDifferAreNotTakenForEqual) {
  ASSERT_TRUE(set_view(1, {"a", "b"}, true));
  mail.deliver_all();
  push("a", 0);
  mail.lose();
  ASSERT_TRUE(set_view(2, {"b"}, true));
  push("b", 1);
  push("b", 2);
  ASSERT_TRUE(set_view(3, {"b", "a"}, true));
  mail.deliver_all();
  ASSERT_TRUE(set_view(4, {"a"}, true));
  EXPECT_EQ(value("a"), 2);
  const auto repeated = push("a", 1);
  EXPECT_TRUE(is_acknowledged(repeated));
  EXPECT_EQ(value("a"), 2);
}

// What the optimizer keeps moves, too: later updates are those of a server that was never left.
class MovingAdamTest : public ReplicationTest {
 protected:
  MovingAdamTest() : ReplicationTest(0, kSize, "adam") {}
};

TEST_F(MovingAdamTest, TheOptimizersStateMovesWithTheVariables) {
  for (int sequence = 0; sequence < 3; ++sequence) push("a", sequence);
  ASSERT_TRUE(set_view(1, {"a", "b"}, true));
  for (int sequence = 3; sequence < 6; ++sequence) {
    push("a", sequence);
    mail.deliver();
    mail.deliver();
  }
  mail.deliver_all();
  push("a", 6);
  const std::vector<float> expected = values("a");
  ASSERT_TRUE(set_view(2, {"b"}, true));
  push("b", 6);
  EXPECT_EQ(values("b"), expected);
}

/// A server with a folder whose writes wait for the test.
class DurableStateTest : public testing::Test {
 protected:
  DurableStateTest() {
    std::filesystem::remove_all(folder);
    start();
    proto::CreateParametersRequest request;
    request.optimizer.make().name = "adam";
    request.optimizer.make().learning_rate = 0.01;
    Parameters variables;
    variables["w"].value = Array::zeros(DType::kFloat, Shape{kSize});
    Array words(DType::kString, Shape{2});
    words.data<std::string>()[0] = "cannot be cut";
    variables["words"].value = words;
    variables["none"].value = Array(DType::kFloat, Shape{0, 3});
    state_id_ =
        create_parameters(
            [this](const char* method, Bytes bytes) {
              Bytes answer;
              methods_->call(method, std::move(bytes), {}, [&](const Status& status, Bytes reply) {
                EXPECT_TRUE(status.ok()) << status.message;
                answer = std::move(reply);
              });
              write_all();
              return answer;
            },
            request, variables, {"words"}, 32)
            .state_id;
  }
  ~DurableStateTest() override {
    if (server_) server_->close();
  }

  void start(std::uint64_t max_log_bytes = 1000) {
    if (server_) server_->close();
    server_.reset();
    writes_.clear();  // is lost with the process
    ParameterServer::Options options;
    options.task = "a";
    options.folder = folder;
    options.run_later = [this](std::function<void()> work) { writes_.push_back(std::move(work)); };
    options.sizes = {.max_part_bytes = 32, .max_log_bytes = max_log_bytes};
    server_ = std::make_unique<ParameterServer>(options);
    methods_ = std::make_unique<MethodTable>();
    server_->add_to(*methods_);
  }
  void write() {
    const std::function<void()> write = std::move(writes_.front());
    writes_.pop_front();
    write();
  }
  void write_all() {
    while (!writes_.empty()) write();
  }
  bool is_writing() const { return !writes_.empty(); }
  std::shared_ptr<bool> push(std::int64_t sequence) {
    proto::PushRequest request;
    request.state_id = state_id_;
    request.coordinator = "chief";
    request.sequence = sequence;
    Bytes bytes = write_message(request);
    Array gradient(DType::kFloat, Shape{kSize});
    for (std::int64_t i = 0; i < kSize; ++i)
      gradient.data<float>()[i] = static_cast<float>((i + sequence) % 7) - 3.0f;
    append_named_tensor_field(bytes, 6, "w", gradient);
    const auto acknowledged = std::make_shared<bool>(false);
    methods_->call(
        kPushGradients, std::move(bytes), {},
        [acknowledged](const Status& status, const Bytes&) { *acknowledged = status.ok(); });
    return acknowledged;
  }
  std::vector<float> values() {
    const PulledParameters pulled = pull();
    if (!pulled.values.contains("w")) return {};
    const auto elements = pulled.values.at("w").values<float>();
    return {elements.begin(), elements.end()};
  }
  const std::string& state_id() const { return state_id_; }
  /// All variables, or rows of "w".
  PulledParameters pull(const Array& rows = {}) {
    proto::PullRequest request;
    request.state_id = state_id_;
    if (!rows.valid()) request.name = {"none", "w", "words"};
    Bytes bytes = write_message(request);
    if (rows.valid()) append_named_tensor_field(bytes, 5, "w", rows);
    PulledParameters result;
    Direct direct{*methods_};
    pull_parameters(
        std::make_shared<ParameterClient>(std::vector<ParameterClient::Replica>{{"a", &direct}}),
        std::move(bytes), nullptr, [&](const Status& status, PulledParameters pulled) {
          EXPECT_TRUE(status.ok()) << status.message;
          result = std::move(pulled);
        });
    return result;
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  const std::string folder = testing::TempDir() + "durable_state";

 private:
  std::deque<std::function<void()>> writes_;
  std::unique_ptr<ParameterServer> server_;
  std::unique_ptr<MethodTable> methods_;
  std::string state_id_;
};

TEST_F(DurableStateTest, AServerThatIsStartedAgainHasWhatItHad) {
  push(0);
  write_all();
  const std::vector<float> before = values();
  start();
  EXPECT_EQ(values(), before);
  const PulledParameters pulled = pull();
  EXPECT_EQ(pulled.values.at("words").values<std::string>()[0], "cannot be cut");
  EXPECT_EQ(pulled.values.at("none").shape(), (Shape{0, 3}));
}

// The process ends after each of the writes of a state that replaces the log: whatever is there of
// it, what was acknowledged is there, once.
TEST_F(DurableStateTest, AStateThatIsWrittenWhileUpdatesComeIsWholeAtAnyMoment) {
  std::vector<std::vector<float>> expected{values()};
  int updates = 0;
  for (int restarts = 0; restarts < 30; ++restarts) {
    // Each time the process ends one write later.
    std::vector<std::shared_ptr<bool>> pushed;
    const int first = updates;
    for (int written = 0; written < restarts || pushed.size() < 8;) {
      if (pushed.size() < 8) {
        pushed.push_back(push(first + static_cast<int>(pushed.size())));
        const auto now = static_cast<std::size_t>(first) + pushed.size();
        if (expected.size() <= now) expected.push_back(values());
      }
      if (!is_writing()) break;
      if (written++ < restarts) write();
    }
    const auto acknowledged =
        static_cast<int>(std::count_if(pushed.begin(), pushed.end(), [](auto& ok) { return *ok; }));
    start();
    updates = first + acknowledged;
    // What was written and not acknowledged may be there, too.
    const std::vector<float> now = values();
    while (updates < first + 8 && expected[static_cast<std::size_t>(updates)] != now) ++updates;
    ASSERT_EQ(now, expected[static_cast<std::size_t>(updates)]) << restarts;
    expected.resize(static_cast<std::size_t>(updates) + 1);
  }
  write_all();
  EXPECT_GT(updates, 100);
  EXPECT_LT(files().size(), 6u);  // older files are removed
}

// Cut off anywhere, a state is not taken for a whole one.
TEST_F(DurableStateTest, ADamagedStateIsRefusedWithWhatToDo) {
  std::string log;
  for (const std::string& name : files()) {
    if (name.starts_with("log-")) log = folder + "/" + name;
  }
  std::filesystem::resize_file(log, std::filesystem::file_size(log) - 40);
  try {
    start();
    FAIL() << "the state was taken for whole";
  } catch (const DataLossError& error) {
    EXPECT_NE(std::string(error.what()).find("begin from the last checkpoint"), std::string::npos)
        << error.what();
  }
}

// As earlier versions wrote it: the whole state in one file.
TEST_F(DurableStateTest, AStateOfAnEarlierVersionIsRead) {
  push(0);
  write_all();
  const std::vector<float> before = values();
  proto::ParameterSnapshot snapshot;
  snapshot.state_id = state_id();
  snapshot.version = 5;
  snapshot.position = 6;
  snapshot.optimizer.make().name = "adam";
  snapshot.optimizer.make().learning_rate = 0.01;
  Bytes bytes = write_message(snapshot);
  for (const char* name : {"none", "w", "words"}) {
    proto::SavedParameter head;
    head.name = name;
    head.version = 5;
    Bytes saved = write_message(head);
    const Array value = pull().values.at(name);
    append_tensor_field(saved, 2, value);
    for (int slot = 0; slot < 2 && value.dtype() == DType::kFloat; ++slot)
      append_tensor_field(saved, 3, Array::zeros(DType::kFloat, value.shape()));
    append_bytes_field(bytes, 5, std::move(saved));
  }
  for (const std::string& name : files()) std::filesystem::remove(folder + "/" + name);
  fs::RecordWriter(folder + "/snapshot-7").write(bytes.flat());
  start();
  EXPECT_EQ(values(), before);
  EXPECT_EQ(pull().version, 5);
  // It goes on, and what is written now is in today's form.
  for (int sequence = 0; sequence < 20; ++sequence) push(sequence);
  write_all();
  const std::vector<float> after = values();
  EXPECT_NE(after, before);
  for (const std::string& name : files()) EXPECT_NE(name, "snapshot-7");
  start();
  EXPECT_EQ(values(), after);
}

TEST_F(DurableStateTest, RowsThatAreLargerThanAMessageArePulledInSeveral) {
  std::vector<std::int64_t> rows;
  for (std::int64_t row = kSize - 1; row >= 0; row -= 2) rows.push_back(row);
  push(0);
  const std::vector<float> all = values();
  const PulledParameters pulled = pull(Array::vector(rows));
  const auto got = pulled.rows.at("w").values<float>();
  ASSERT_EQ(got.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(got[i], all[static_cast<std::size_t>(rows[i])]);
}

}  // namespace
}  // namespace tandem::distribute
