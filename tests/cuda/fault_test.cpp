// Every call of the driver in turn fails during a training step on a device GPU:0, whose kernels
// run on the host: the step fails with an error of the right kind that names what failed, or is
// right; the next one is right; nothing leaks. And an error that sticks, as after an access to a
// wrong address, loses the GPU alone: the process goes on with the CPU.
//
// fault_test sticky N is one process of the last kind.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/device/cuda/internal/driver_api.h"
#include "tandem/runtime/runtime.h"
#include <tandem/tandem.h>

#include "tests/cuda/stand_in_driver.h"

namespace tandem::keras {
namespace {

// Beyond this many calls a step makes too many, or the test does not end.
constexpr long long kMaxCalls = 3000;

// A small network and what its training starts from.
class Training {
 public:
  Training() {
    {
      const DeviceScope on("/CPU:0");
      x_ = Tensor{{0.1, 0.5, -0.2}, {0.9, -0.3, 0.4}, {-0.7, 0.2, 0.6}, {0.3, 0.3, -0.8}};
      x_ = cast(x_, float32);
      y_ = Tensor{0, 1, 1, 0};
    }
    const auto first = initializers::GlorotUniform(3);
    const auto second = initializers::GlorotUniform(4);
    model_ = std::make_unique<Sequential>(
        Sequential{Input({3}), Dense(5, {.activation = "relu", .kernel_initializer = first}),
                   Dense(2, {.activation = "softmax", .kernel_initializer = second})});
    model_->compile({.optimizer = "adam", .loss = "sparse_categorical_crossentropy"});
    model_->optimizer().build(model_->trainable_weights());
    weights_ = values_of(model_->weights());
    slots_ = values_of(model_->optimizer().variables());
  }

  void put_back() {
    assign(model_->weights(), weights_);
    assign(model_->optimizer().variables(), slots_);
  }

  float step() { return static_cast<float>(model_->train_on_batch(x_, y_)["loss"]); }

  std::vector<float> weights() const {
    std::vector<float> all;
    for (const Tensor& value : values_of(model_->weights())) {
      const std::vector<float> floats = cast(value, float32).to_vector<float>();
      all.insert(all.end(), floats.begin(), floats.end());
    }
    return all;
  }

 private:
  static std::vector<Tensor> values_of(const std::vector<Variable>& variables) {
    std::vector<Tensor> values;
    for (const Variable& v : variables) {
      const DeviceScope on("/CPU:0");
      values.push_back(identity(v.read_value()));
    }
    return values;
  }
  static void assign(const std::vector<Variable>& variables, const std::vector<Tensor>& values) {
    for (std::size_t i = 0; i < variables.size(); ++i) variables[i].assign(values[i]);
  }

  Tensor x_, y_;
  std::unique_ptr<Sequential> model_;
  std::vector<Tensor> weights_, slots_;
};

struct Outcome {
  float loss = 0;
  std::vector<float> weights;
};

Outcome right_step(Training& training) {
  training.put_back();
  Outcome outcome;
  outcome.loss = training.step();
  outcome.weights = training.weights();
  return outcome;
}

const Outcome& expected() {
  static const Outcome outcome = [] {
    Runtime runtime;
    const RuntimeScope scope(runtime);
    Training training;
    return right_step(training);
  }();
  return outcome;
}

void expect_right(const Outcome& outcome) {
  EXPECT_EQ(outcome.loss, expected().loss);
  EXPECT_EQ(outcome.weights, expected().weights);
}

bool is_kind_for(int result, Code code) {
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    return code == Code::kResourceExhausted || code == Code::kUnavailable;
  return code == Code::kInternal || code == Code::kUnavailable;
}

// The node of a graph, the op, or the value that is copied.
bool names_what_failed(const std::string& text) {
  for (const char* word : {"node '", "{{node ", "[Op:", "in copying a value"}) {
    if (text.find(word) != std::string::npos) return true;
  }
  return false;
}

// A step whose nth call of the driver fails. False if it makes fewer calls.
bool fail_at(Training& training, long long nth, int result) {
  driver().fail(nth, result, /*sticks=*/0);
  try {
    const float loss = training.step();
    EXPECT_EQ(loss, expected().loss) << "call " << nth;
  } catch (const Error& error) {
    EXPECT_TRUE(is_kind_for(result, error.code())) << "call " << nth << ": " << error.what();
    EXPECT_TRUE(names_what_failed(error.what())) << "call " << nth << ": " << error.what();
  }
  const bool failed = driver().pending() == 0;
  driver().fail(0, 0, 0);
  return failed;
}

void expect_nothing_left() {
  const StandInUse use = driver().used();
  EXPECT_EQ(use.device_bytes, 0);
  EXPECT_EQ(use.streams, 0);
  EXPECT_EQ(use.events, 0);
  EXPECT_EQ(use.graphs, 0);
  EXPECT_EQ(use.host_blocks, 0);
  EXPECT_EQ(use.reserved_ranges, 0);
}

class CudaFaults : public testing::TestWithParam<int> {};

TEST_P(CudaFaults, InAStepThatRanBefore) {
  expected();
  long long nth = 1;
  {
    Runtime runtime;
    const RuntimeScope scope(runtime);
    Training training;
    for (int warm = 0; warm < 4; ++warm) expect_right(right_step(training));
    for (; nth < kMaxCalls; ++nth) {
      training.put_back();
      const bool failed = fail_at(training, nth, GetParam());
      expect_right(right_step(training));
      if (!failed || HasFailure()) break;
    }
  }
  std::printf("%lld calls of the driver failed in turn\n", nth - 1);
  EXPECT_GT(nth, 3);
  expect_nothing_left();
}

TEST_P(CudaFaults, InTheFirstStep) {
  expected();
  long long nth = 1;
  for (bool failed = true; failed && !HasFailure() && nth < kMaxCalls; ++nth) {
    {
      Runtime runtime;
      const RuntimeScope scope(runtime);
      Training training;
      failed = fail_at(training, nth, GetParam());
      expect_right(right_step(training));
    }
    expect_nothing_left();
  }
  std::printf("%lld calls of the driver failed in turn\n", nth - 2);
  EXPECT_GT(nth, 10);
}

INSTANTIATE_TEST_SUITE_P(Errors, CudaFaults,
                         testing::Values(CUDA_ERROR_OUT_OF_MEMORY,
                                         CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES),
                         [](const testing::TestParamInfo<int>& error) {
                           return error.param == CUDA_ERROR_OUT_OF_MEMORY ? "OutOfMemory"
                                                                          : "TooManyResources";
                         });

// ---- Errors that stick ----

constexpr int kRight = 0, kWrong = 1, kNotReached = 3;

// In a process of its own.
int stick_at(long long nth) {
  expected();
  {
    Runtime runtime;
    const RuntimeScope scope(runtime);
    Training training;
    for (int warm = 0; warm < 4; ++warm) right_step(training);
    driver().fail(nth, CUDA_ERROR_ILLEGAL_ADDRESS, /*sticks=*/1);
    bool returned = false;
    try {
      training.step();
      if (driver().pending() != 0) return kNotReached;
      // The last call of a step may be one that nothing of the step waits for.
      returned = true;
      training.step();
      std::fprintf(stderr, "a step runs on a GPU that is lost\n");
      return kWrong;
    } catch (const Error& error) {
      const std::string text = error.what();
      const bool right = is_kind_for(CUDA_ERROR_ILLEGAL_ADDRESS, error.code()) &&
                         (returned || names_what_failed(text));
      if (!right) {
        std::fprintf(stderr, "call %lld: %s\n", nth, text.c_str());
        return kWrong;
      }
    }
    // The same process goes on with the CPU.
    const DeviceScope on("/CPU:0");
    Training on_cpu;
    const float loss = on_cpu.step();
    if (!(std::abs(loss - expected().loss) < 1e-5f)) {
      std::fprintf(stderr, "on the CPU the loss is %g and should be %g\n",
                   static_cast<double>(loss), static_cast<double>(expected().loss));
      return kWrong;
    }
  }
  return kRight;
}

TEST(CudaFaultsOfGpus, ThatStickLoseTheGpuAlone) {
  long long nth = 1;
  for (; nth < kMaxCalls; ++nth) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const std::string number = std::to_string(nth);
      execl("/proc/self/exe", "fault_test", "sticky", number.c_str(), nullptr);
      _exit(127);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "call " << nth << " ends the process";
    if (WEXITSTATUS(status) == kNotReached) break;
    ASSERT_EQ(WEXITSTATUS(status), kRight) << "call " << nth;
  }
  std::printf("%lld calls of the driver failed in turn\n", nth - 1);
  EXPECT_GT(nth, 3);
}

}  // namespace
}  // namespace tandem::keras

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "sticky") == 0)
    return tandem::keras::stick_at(std::atoll(argv[2]));
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
