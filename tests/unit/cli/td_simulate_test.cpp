// td simulate, as a shell would call it.

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/fs/file_system.h"

#include "tests/unit/cli/td_util.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Two products of 512 x 512 beside each other, and their sum.
constexpr const char* kGraph = R"(
node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }
node { name: 'a' op: 'MatMul' input: 'x' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }
node { name: 'b' op: 'MatMul' input: 'x' input: 'a' attr { key: 'T' value { type: DT_FLOAT } } }
node { name: 'c' op: 'MatMul' input: 'a' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }
node { name: 'sum' op: 'AddV2' input: 'b' input: 'c' attr { key: 'T' value { type: DT_FLOAT } } }
)";

constexpr const char* kDevices = R"({"devices": [
  {"name": "CPU:0", "flops": "1G", "bandwidth": "1GB/s"},
  {"name": "GPU:0", "count": 1000, "flops": "100G", "bandwidth": "100GB/s", "link": "100GB/s",
   "memory": "1GiB"}]})";

class TdSimulate : public TdTest {
 protected:
  void SetUp() override {
    fs::write_file(path("g.pbtxt"), kGraph);
    std::string devices = kDevices;
    fs::write_file(path("devices.json"), devices);
    devices.replace(devices.find("1GiB"), 4, "1MiB");
    fs::write_file(path("small.json"), devices);
  }

  TdResult simulate(const std::string& arguments) { return run("simulate " + arguments); }
};

TEST_F(TdSimulate, ReportsWhatDoesNotRunWhereItAsks) {
  fs::write_file(path("asks.pbtxt"),
                 "node { name: 't' op: 'NoOp' device: '/device:TPU:0' }" + std::string(kGraph));
  const TdResult r = simulate("asks.pbtxt --devices devices.json --target t --feed x=512,512");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.err, HasSubstr("td: soft placement: 1 node does not run on the device that it asks "
                               "for, 't' (/device:TPU:0)"));
  EXPECT_EQ(simulate("g.pbtxt --devices devices.json --feed x=512,512").err, "");
}

TEST_F(TdSimulate, AThousandDevices) {
  const TdResult r = simulate("g.pbtxt --devices devices.json --policy cost --feed x=512,512");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.out,
              AllOf(HasSubstr("on 1001 devices, placed by the cost policy"), HasSubstr(" a step, "),
                    HasSubstr("peak memory"), HasSubstr("devices have nothing to do"),
                    HasSubstr("/job:localhost/replica:0/task:0/device:GPU:0")));
}

TEST_F(TdSimulate, GreedyOnOneDeviceAddsUp) {
  // Three products of 2 * 512^3 operations at 1e11 a second, a sum, and the copy of x.
  const TdResult r = simulate("g.pbtxt --devices devices.json --feed x:0=512,512 --json");
  EXPECT_EQ(r.code, 0) << r.err;
  const std::size_t at = r.out.find("\"step_ms\":");
  ASSERT_NE(at, std::string::npos) << r.out;
  const double products = 3 * 2 * 512.0 * 512 * 512 / 1e11 * 1e3;
  const double step = std::atof(r.out.c_str() + at + 10);
  EXPECT_GT(step, products);
  EXPECT_LT(step, 1.02 * products);
  EXPECT_THAT(r.out, AllOf(HasSubstr("\"copies\":1,\"copied_bytes\":1048576.0"),
                           HasSubstr("\"policy\":\"greedy\""), HasSubstr("\"busy_share\":")));
  // x, two products and a third or the sum in its place do not fit into 1 MiB.
  EXPECT_THAT(simulate("g.pbtxt --devices small.json --feed x=512,512").out,
              HasSubstr("more than there is"));
}

TEST_F(TdSimulate, PlansOverSeveralHosts) {
  const auto step = [&](const std::string& network) {
    fs::write_file(path("hosts.json"), R"({"devices": [
        {"name": "/job:worker/task:0/CPU:0", "tasks": 2, "flops": "1G", "bandwidth": "1GB/s"},
        {"name": "/job:worker/task:0/GPU:0", "tasks": 2, "flops": "100G", "bandwidth": "100GB/s",
         "link": "100GB/s"}], "network": )" +
                                           network + "}");
    const TdResult r =
        simulate("g.pbtxt --devices hosts.json --policy cost --feed x=512,512 --json");
    EXPECT_EQ(r.code, 0) << r.err;
    const std::size_t at = r.out.find("\"step_ms\":");
    return at == std::string::npos ? 0 : std::atof(r.out.c_str() + at + 10);
  };
  // One product after the other on one GPU, or two of the three side by side on two hosts.
  const double product = 2 * 512.0 * 512 * 512 / 1e11 * 1e3;
  EXPECT_GT(step(R"({"bandwidth": "1MB/s", "latency": "1ms"})"), 3 * product);
  EXPECT_LT(step(R"({"bandwidth": "100GB/s"})"), 2.2 * product);
}

TEST_F(TdSimulate, DistinguishesWrongUsageFromFailure) {
  expect_wrong_usage({"simulate", "simulate g.pbtxt",
                      "simulate g.pbtxt --devices devices.json --policy best",
                      "simulate g.pbtxt --devices devices.json --feed x",
                      "simulate g.pbtxt --devices devices.json --feed x=1,b"});
  const auto fails = [&](const std::string& arguments) {
    return failure_of("simulate " + arguments);
  };
  const auto with = [&](const std::string& entry) {
    std::string devices = kDevices;
    devices.insert(devices.find("\"memory\""), entry + ", ");
    fs::write_file(path("typo.json"), devices);
    return fails("g.pbtxt --devices typo.json");
  };
  EXPECT_THAT(with("\"without\": [\"Unique\", \"MatMull\"]"),
              AllOf(HasSubstr("typo.json: "), HasSubstr("GPU:0 names 'MatMull'"),
                    HasSubstr("Did you mean 'MatMul'")));
  EXPECT_THAT(with("\"kernels\": \"cpuu\""),
              AllOf(HasSubstr("typo.json: "), HasSubstr("'cpuu'"), HasSubstr("kernels 'cpu'")));
  EXPECT_THAT(fails("g.pbtxt --devices missing.json"), HasSubstr("No such file"));
  EXPECT_THAT(fails("g.pbtxt --devices g.pbtxt"), HasSubstr("g.pbtxt: device set: "));
  EXPECT_THAT(fails("g.pbtxt --devices devices.json --costs devices.json"),
              HasSubstr("no cost profile"));
  EXPECT_THAT(fails("g.pbtxt --devices devices.json --fetch som"), HasSubstr("Did you mean 'sum'"));
}

}  // namespace
}  // namespace tandem
