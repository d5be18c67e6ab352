// Collectives between devices of one program: by name, as graphs of TensorFlow have them.

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tandem/tandem.h>

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A program with these devices, for a test.
class Devices {
 public:
  explicit Devices(DeviceConfig config) : runtime_({.devices = std::move(config)}) {}

 private:
  Runtime runtime_;
  RuntimeScope scope_{runtime_};
};

DeviceConfig two_cpus() {
  DeviceConfig config;
  config.logical["CPU:0"] = {{}, {}};
  return config;
}

Tensor reduce(const Tensor& x, int size, const std::string& merge = "Add",
              const std::string& final = "Id", int instance = 1, float timeout = 0) {
  return call("CollectiveReduceV2", {x, Tensor(size), Tensor(1), Tensor(instance)},
              {{"merge_op", merge}, {"final_op", final}, {"timeout_seconds", timeout}})
      .at(0);
}

Tensor gather(const Tensor& x, int size) {
  return call("CollectiveGatherV2", {x, Tensor(size), Tensor(1), Tensor(2)}, {}).at(0);
}

template <class Body>
Tensor on(const std::string& device, Body body) {
  const DeviceScope scope(device);
  return body();
}

std::vector<float> values(const Tensor& tensor) { return tensor.to_vector<float>(); }

// Both devices' results, joined.
std::vector<float> on_both(const std::string& type, const std::function<Tensor(Tensor)>& body) {
  const auto f = function([&](const Tensor& x, const Tensor& y) {
    std::vector<Tensor> made;
    made.push_back(on("/" + type + ":1", [&] { return body(y); }));
    made.push_back(on("/" + type + ":0", [&] { return body(x); }));
    return concat({made[1], made[0]}, 0);
  });
  std::vector<float> result;
  for (int i = 0; i < 4; ++i) result = values(f(Tensor{1.0f, 2.0f}, Tensor{10.0f, 20.0f}));
  return result;
}

void expect_collectives(const std::string& type) {
  const auto reduced = [&](const char* merge, const char* final) {
    return on_both(type, [=](const Tensor& x) { return reduce(x, 2, merge, final); });
  };
  EXPECT_THAT(reduced("Add", "Id"), ElementsAre(11, 22, 11, 22));
  EXPECT_THAT(reduced("Add", "Div"), ElementsAre(5.5, 11, 5.5, 11));
  EXPECT_THAT(reduced("Mul", "Id"), ElementsAre(10, 40, 10, 40));
  EXPECT_THAT(reduced("Max", "Id"), ElementsAre(10, 20, 10, 20));
  EXPECT_THAT(reduced("Min", "Id"), ElementsAre(1, 2, 1, 2));
  EXPECT_THAT(on_both(type, [](const Tensor& x) { return gather(x, 2); }),
              ElementsAre(1, 2, 10, 20, 1, 2, 10, 20));
  EXPECT_THAT(
      on_both(type,
              [](const Tensor& x) {
                return call("CollectiveReduceScatterV2", {x, Tensor(2), Tensor(1), Tensor(4)},
                            {{"merge_op", std::string("Add")}, {"final_op", std::string("Div")}})
                    .at(0);
              }),
      ElementsAre(5.5, 11));
  EXPECT_THAT(on_both(type,
                      [](const Tensor& x) {
                        return call("NcclAllReduce", {x},
                                    {{"reduction", std::string("prod")},
                                     {"num_devices", std::int64_t{2}},
                                     {"shared_name", std::string("sums")}})
                            .at(0);
                      }),
              ElementsAre(10, 40, 10, 40));
  const auto broadcast = function([&](const Tensor& x) {
    const Tensor sent = on("/" + type + ":1", [&] {
      return call("CollectiveBcastSendV2", {x * 2.0f, Tensor(2), Tensor(1), Tensor(3)}, {}).at(0);
    });
    const Tensor received = on("/" + type + ":0", [&] {
      return call("CollectiveBcastRecvV2",
                  {Tensor(2), Tensor(1), Tensor(3), Tensor(std::vector<int>{2})},
                  {{"T", DType::kFloat}})
          .at(0);
    });
    return concat({sent, received}, 0);
  });
  for (int i = 0; i < 3; ++i)
    EXPECT_THAT(values(broadcast(Tensor{1.0f, 2.0f})), ElementsAre(2, 4, 2, 4));
}

TEST(CommunicationOps, MeetBetweenCpus) {
  const Devices devices(two_cpus());
  expect_collectives("CPU");
}

TEST(CommunicationOps, MeetBetweenAcceleratorsWithMemoryOfTheirOwn) {
  const Devices devices({.emulate = {"GPU:2,memory=64MiB"}});
  expect_collectives("GPU");
}

TEST(CommunicationOps, MeetBetweenAcceleratorsOfAnotherKernelClass) {
  const Devices devices({.emulate = {"GPU:2,memory=64MiB,class=x"}});
  expect_collectives("GPU");
}

TEST(CommunicationOps, TakeIntegersOnAccelerators) {
  const Devices devices({.emulate = {"GPU:2,memory=64MiB"}});
  const auto f = function([&](const Tensor& x) {
    const Tensor a = on("/GPU:0", [&] { return reduce(x, 2); });
    const Tensor b = on("/GPU:1", [&] { return reduce(x + x, 2, "Add"); });
    return concat({a, b}, 0);
  });
  EXPECT_THAT(f(Tensor{1, 2}).to_vector<std::int32_t>(), ElementsAre(3, 6, 3, 6));
}

TEST(CommunicationOps, OfOneNeedNoOthers) {
  const Tensor x{1.0f, 2.0f};
  EXPECT_THAT(values(reduce(x, 1)), ElementsAre(1, 2));
  EXPECT_THAT(values(gather(x, 1)), ElementsAre(1, 2));
}

TEST(CommunicationOps, OfSeveralMeetInOneStep) {
  try {
    reduce(Tensor{1.0f}, 2);
    FAIL() << "an eager call waits for others";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), HasSubstr("within one step"));
  }
}

TEST(CommunicationOps, RefuseWhatCannotBe) {
  const Tensor x{1.0f, 2.0f};
  const auto receive = [](const Tensor& shape) {
    call("CollectiveBcastRecvV2", {Tensor(1), Tensor(1), Tensor(1), shape}, {{"T", DType::kFloat}});
  };
  EXPECT_THROW(receive(Tensor(std::vector<int>{-1})), InvalidArgumentError);
  EXPECT_THROW(receive(Tensor(3)), InvalidArgumentError);
  EXPECT_THROW(receive(Tensor(std::vector<int>{2})), InvalidArgumentError);  // nothing is sent
  EXPECT_THROW(gather(Tensor(1.0f), 1), InvalidArgumentError);
  EXPECT_THROW(reduce(x, 0), InvalidArgumentError);
  EXPECT_THROW(reduce(x, 1, "Max", "Div"), UnimplementedError);
  EXPECT_THROW(call("CollectiveReduceV2", {x, Tensor(std::vector<int>{1}), Tensor(1), Tensor(1)},
                    {{"merge_op", std::string("Add")}, {"final_op", std::string("Id")}}),
               InvalidArgumentError);
  EXPECT_THROW(call("NcclAllReduce", {x},
                    {{"reduction", std::string("sum")},
                     {"num_devices", (std::int64_t{1} << 32) + 1},
                     {"shared_name", std::string("s")}}),
               InvalidArgumentError);
  const auto scatter = function([&] {
    return call("CollectiveReduceScatterV2", {x + x, Tensor(3), Tensor(1), Tensor(1)},
                {{"merge_op", std::string("Add")}, {"final_op", std::string("Id")}})[0];
  });
  EXPECT_THROW(scatter(), InvalidArgumentError);
}

// The other member never comes, as its input fails.
TEST(CommunicationOps, EndWithTheFailureOfAnother) {
  const Devices devices(two_cpus());
  const auto f = function([&](const Tensor& x, const Tensor& i) {
    const Tensor a = on("/CPU:0", [&] { return reduce(x, 2); });
    const Tensor b = on("/CPU:1", [&] { return reduce(gather_nd(x, i), 2); });
    return a + b;
  });
  EXPECT_THROW(f(Tensor{1.0f, 2.0f}, Tensor(std::vector<int>{5})), InvalidArgumentError);
}

TEST(CommunicationOps, DifferingMembersFail) {
  const Devices devices(two_cpus());
  const auto f = function([&](const Tensor& x) {
    const Tensor a = on("/CPU:0", [&] { return reduce(x, 2); });
    const Tensor b = on("/CPU:1", [&] { return reduce(concat({x, x}, 0), 2); });
    return concat({a, b}, 0);
  });
  EXPECT_THROW(f(Tensor{1.0f}), InvalidArgumentError);
}

// One of two on the same device.
TEST(CommunicationOps, ADeviceIsOneMember) {
  const Devices devices(two_cpus());
  const auto f = function([&](const Tensor& x) {
    const DeviceScope scope("/CPU:0");
    return reduce(x, 2) + reduce(x, 2);
  });
  try {
    f(Tensor{1.0f});
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("has come already"));
  }
}

TEST(CommunicationOps, CancellingEndsTheWait) {
  const Devices devices(two_cpus());
  const auto f = function([&](const Tensor& x) { return reduce(x, 2); });
  const auto stop = std::make_shared<Cancellation>();
  std::thread later([&] { stop->cancel(); });
  {
    const CancellationScope scope(stop);
    EXPECT_THROW(f(Tensor{1.0f}), CancelledError);
  }
  later.join();
}

TEST(CommunicationOps, TimeEndsTheWait) {
  const auto f = function([&](const Tensor& x) { return reduce(x, 2, "Add", "Id", 1, 1e-3f); });
  EXPECT_THROW(f(Tensor{1.0f}), DeadlineExceededError);
}

// In a loop each iteration is a group of its own.
TEST(CommunicationOps, MeetInLoops) {
  const Devices devices(two_cpus());
  const auto f = function([&](const Tensor& x) {
    const auto end = while_loop([](const Tensor& i, const Tensor&) { return i < 3; },
                                [](const Tensor& i, const Tensor& y) {
                                  const Tensor a = on("/CPU:0", [&] { return reduce(y, 2); });
                                  const Tensor b = on("/CPU:1", [&] { return reduce(y, 2); });
                                  return std::tuple(i + 1, (a + b) / 2.0f);
                                },
                                Tensor(0), x);
    return std::get<1>(end);
  });
  EXPECT_THAT(values(f(Tensor{1.0f, 2.0f})), ElementsAre(8, 16));
}

TEST(CommunicationOps, NcclReduceAndBroadcastAreOrdinaryOps) {
  const auto combined = [](const char* reduction) {
    return call("NcclReduce", {Tensor{1.0f, 5.0f}, Tensor{4.0f, 2.0f}},
                {{"reduction", std::string(reduction)}})
        .at(0);
  };
  for (const bool traced : {false, true}) {
    const auto result = [&](const char* reduction) {
      if (!traced) return values(combined(reduction));
      return values(function([&] { return combined(reduction); })());
    };
    EXPECT_THAT(result("sum"), ElementsAre(5, 7));
    EXPECT_THAT(result("prod"), ElementsAre(4, 10));
    EXPECT_THAT(result("max"), ElementsAre(4, 5));
    EXPECT_THAT(result("min"), ElementsAre(1, 2));
  }
  EXPECT_THAT(values(call("NcclBroadcast", {Tensor{3.0f}}, {{"shape", PartialShape{1}}}).at(0)),
              ElementsAre(3));
}

}  // namespace
}  // namespace tandem
