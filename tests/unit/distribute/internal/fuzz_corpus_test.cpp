// Requests of TensorFlow's clients and masters, as they were recorded, and what goes through local
// connections; each of them cut and changed a little.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/fs/file_system.h"

#include "tests/fuzz/cluster_requests.h"
#include "tests/fuzz/local_frames.h"

namespace tandem::fuzz {
namespace {

// Calls `run` with each input of a folder and with `changes` variants of it; the number of inputs.
int run_corpus(const std::string& folder, int changes, void (*run)(std::string_view)) {
  std::uint64_t random = 1;
  const auto next = [&](std::size_t below) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(random >> 33) % below;
  };
  int inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/fuzz/corpus/" + folder)) {
    const std::string input = fs::read_file(entry.path().string());
    run(input);
    ++inputs;
    for (int i = 0; i < changes && input.size() > 1; ++i) {
      std::string changed = input;
      for (std::size_t n = next(4); n > 0; --n)
        changed[1 + next(changed.size() - 1)] = static_cast<char>(next(256));
      if (i % 3 == 0) changed.resize(1 + next(changed.size() - 1));
      run(changed);
    }
  }
  return inputs;
}

TEST(ClusterRequests, EveryRequestIsAnsweredAndTheServerGoesOn) {
  EXPECT_GT(run_corpus("cluster_requests_fuzz", 20, cluster_requests), 40);
}

TEST(LocalFrames, HostileBytesAreReadOrRefused) {
  EXPECT_GT(run_corpus("local_frames_fuzz", 500, local_frames), 5);
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
