// Requests of TensorFlow's clients and masters, as they were recorded, and each of them cut and
// changed a little.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/fs/file_system.h"

#include "tests/fuzz/cluster_requests.h"

namespace tandem::fuzz {
namespace {

TEST(ClusterRequests, EveryRequestIsAnsweredAndTheServerGoesOn) {
  std::uint64_t random = 1;
  const auto next = [&](std::size_t below) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(random >> 33) % below;
  };
  int inputs = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("tests/fuzz/corpus/cluster_requests_fuzz")) {
    const std::string input = fs::read_file(entry.path().string());
    cluster_requests(input);
    ++inputs;
    constexpr int kChanges = 20;
    for (int i = 0; i < kChanges && input.size() > 1; ++i) {
      std::string changed = input;
      for (std::size_t n = next(4); n > 0; --n)
        changed[1 + next(changed.size() - 1)] = static_cast<char>(next(256));
      if (i % 3 == 0) changed.resize(1 + next(changed.size() - 1));
      cluster_requests(changed);
    }
  }
  EXPECT_GT(inputs, 40);
}

TEST(ClusterRequests, EmptyAndHostileOnesHaveTheirStatus) {
  RequestedCluster cluster;
  cluster.prepare();
  const auto code = [&](const char* method, const std::string& bytes = {}) {
    return cluster.request(method, bytes).code;
  };
  EXPECT_EQ(code("CoordinationService/Barrier"), Code::kUnimplemented);
  EXPECT_EQ(code("MasterService/RunStep"), Code::kAborted);
  EXPECT_EQ(code("WorkerService/CreateWorkerSession"), Code::kInvalidArgument);
  EXPECT_EQ(code("WorkerService/RecvTensor"), Code::kInvalidArgument);
  EXPECT_EQ(code("WorkerService/GetStatus"), Code::kOk);
  // A field of 2^62 bytes is announced.
  const std::string gigantic = "\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x40";
  EXPECT_EQ(code("MasterService/RunStep", gigantic), Code::kInvalidArgument);
  EXPECT_EQ(code("WorkerService/RegisterGraph", gigantic), Code::kInvalidArgument);
}

}  // namespace
}  // namespace tandem::fuzz
