// What explanations say of kernels that have several implementations.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <tandem/runtime/explain.h>
#include <tandem/tandem.h>

namespace {

namespace td = tandem;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

td::Explanation::Op op(const td::Explanation& e, std::string_view type) {
  for (const auto& o : e.ops)
    if (o.op == type) return o;
  throw std::runtime_error("no op " + std::string(type));
}

std::vector<std::string> names(const td::KernelChoice& choice) {
  std::vector<std::string> out;
  for (const auto& c : choice.candidates) out.push_back(c.name);
  return out;
}

TEST(KernelChoice, ExplainNamesTheCandidatesOfAProductAndTheirTimes) {
  const auto product = td::function([](td::Tensor x, td::Tensor y) { return td::matmul(x, y); });
  const td::Tensor a = td::ones({96, 160}), b = td::ones({160, 224});
  product(a, b);
  const td::Explanation e = td::explain(product, a, b);
  const auto matmul = op(e, "MatMul");
  ASSERT_TRUE(matmul.kernel.has_value());
  const td::KernelChoice& choice = *matmul.kernel;
  EXPECT_EQ(choice.problem, "matmul float nn 64+ x 128+ x 128+ x 1");
  EXPECT_EQ(names(choice), (std::vector<std::string>{"oneDNN matmul", "oneDNN gemm", "BLAS"}));
  EXPECT_GE(choice.threads, 1);
  double chosen = 0, fastest = 1e9;
  for (const auto& c : choice.candidates) {
    EXPECT_GT(c.seconds, 0) << c.name;
    fastest = std::min(fastest, c.seconds);
    if (c.name == choice.chosen) chosen = c.seconds;
  }
  // The assumed one stays unless another is clearly faster.
  EXPECT_LE(chosen, 1.25 * fastest);

  EXPECT_THAT(e.to_text(), HasSubstr("kernels with several implementations"));
  EXPECT_THAT(e.to_text(), HasSubstr(choice.problem));
  const auto json = nlohmann::json::parse(e.to_json());
  bool found = false;
  for (const auto& o : json["ops"]) {
    if (o["op"] != "MatMul") continue;
    found = true;
    EXPECT_EQ(o["kernel"]["chosen"], choice.chosen);
    EXPECT_EQ(o["kernel"]["candidates"].size(), 3u);
  }
  EXPECT_TRUE(found);
  EXPECT_THAT(e.to_html(), HasSubstr("kernel " + choice.chosen));
}

TEST(KernelChoice, ExplainSaysWhatIsAssumedBeforeTheFirstCall) {
  const auto product = td::function([](td::Tensor x) { return td::matmul(x, x); });
  // A class of sizes that nothing here runs.
  const td::Explanation e = td::explain(product, td::cast(td::ones({33, 33}), td::float16));
  const auto matmul = op(e, "MatMul");
  ASSERT_TRUE(matmul.kernel.has_value());
  EXPECT_THAT(matmul.kernel->chosen, AnyOf("through float", "through float in blocks"));
  EXPECT_THAT(matmul.kernel->reason, HasSubstr("assumed"));
}

TEST(KernelChoice, OpsWithOneImplementationHaveNoChoice) {
  const auto sum = td::function([](td::Tensor x) { return x + x; });
  const td::Explanation e = td::explain(sum, td::ones({64, 64}));
  EXPECT_FALSE(op(e, "AddV2").kernel.has_value());
  EXPECT_THAT(e.to_text(), Not(HasSubstr("kernels with several implementations")));
}

TEST(KernelChoice, ConvolutionsByFiltersOfOneEntryCompeteWithMatmul) {
  const auto conv = td::function([](td::Tensor x, td::Tensor filter) {
    return td::nn::conv2d(x, filter, {1, 1}, "VALID");
  });
  const td::Tensor x = td::ones({2, 8, 8, 64}), filter = td::ones({1, 1, 64, 128});
  const td::Tensor y = conv(x, filter);
  EXPECT_EQ(y.at<float>({1, 7, 7, 127}), 64.0f);
  const auto chosen = op(td::explain(conv, x, filter), "Conv2D").kernel;
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(names(*chosen), (std::vector<std::string>{"oneDNN convolution", "matmul"}));
  EXPECT_GE(chosen->threads, 1);
  // With more entries there is one way.
  const auto wide = op(td::explain(conv, x, td::ones({3, 3, 64, 128})), "Conv2D");
  EXPECT_FALSE(wide.kernel.has_value());
}

// Whatever was chosen, equal calls give equal bits, eagerly and in a graph.
TEST(KernelChoice, EqualCallsGiveEqualBits) {
  for (const td::DType dtype : {td::float32, td::float16, td::bfloat16}) {
    const td::Tensor x = td::cast(td::random::uniform({150, 170}, {.seed = 1}), dtype);
    const td::Tensor y = td::cast(td::random::uniform({170, 130}, {.seed = 2}), dtype);
    const auto product = td::function([](td::Tensor a, td::Tensor b) { return td::matmul(a, b); });
    const td::Tensor first = td::matmul(x, y);
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(td::reduce_all(td::equal(td::matmul(x, y), first)).item<bool>());
      EXPECT_TRUE(td::reduce_all(td::equal(product(x, y), first)).item<bool>());
    }
  }
}

}  // namespace
