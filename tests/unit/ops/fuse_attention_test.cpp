// Attention: one op in the graph that runs, with the values that the single ops give eagerly.

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/keras/layers/attention.h"
#include "tandem/keras/layers/dot_attention.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/layout_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/nn_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/runtime/config.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/predict_peak_memory.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/traced_function.h"

#include "tests/unit/ops/fusion_util.h"

namespace tandem {
namespace {

using Tensors = std::vector<Tensor>;

constexpr double kTolerance = 2e-6;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// What is done to the scores before the softmax, and to the probabilities after it.
using Change = std::function<Tensor(Tensor, const Tensors&)>;

Tensor scaled(Tensor scores, const Tensors&) { return scores * 0.25; }
Tensor as_it_is(Tensor probabilities, const Tensors&) { return probabilities; }

// [batch, positions, heads, size], as Keras has it: query, key, value, more for `change`.
Body einsums(Change change = scaled, Change after = as_it_is) {
  return [=](const Tensors& in) -> Tensors {
    Tensor scores = einsum("BTNH,BSNH->BNTS", {in[0], in[1]});
    return {einsum("BNTS,BSNH->BTNH", {after(nn::softmax(change(scores, in)), in), in[2]})};
  };
}

// [batch, heads, positions, size].
Body products(Change change = scaled) {
  return [=](const Tensors& in) -> Tensors {
    const Tensor scores = matmul(in[0], in[1], {.transpose_b = true});
    return {matmul(nn::softmax(change(scores, in)), in[2])};
  };
}

// The products of operands that are transposed first.
Body turned_products(Change change = scaled) {
  return [=](const Tensors& in) -> Tensors {
    const auto turned = [](const Tensor& x) { return transpose(x, {0, 2, 1, 3}); };
    const Tensor scores = matmul(turned(in[0]) * 0.5, turned(in[1]), {.transpose_b = true});
    return {turned(matmul(nn::softmax(change(scores, in)), turned(in[2])))};
  };
}

Tensors heads_last(std::int64_t batch, std::int64_t queries, std::int64_t keys, std::int64_t heads,
                   std::int64_t size) {
  return {numbers({batch, queries, heads, size}, 1), numbers({batch, keys, heads, size}, 2),
          numbers({batch, keys, heads, size}, 3)};
}

void expect_fused(const Body& body, const Tensors& args, double tolerance = kTolerance) {
  const MutableFunction f = optimized_graph(body, args);
  EXPECT_EQ(count_op(f, "_FusedAttention"), 1) << f.graph.to_string();
  for (const char* left : {"Einsum", "BatchMatMulV2", "MatMul", "Softmax", "Transpose"})
    EXPECT_EQ(count_op(f, left), 0) << left << " in\n" << f.graph.to_string();
  expect_as_eager(body, args, tolerance);
}

void expect_not_fused(const Body& body, const Tensors& args) {
  const MutableFunction f = optimized_graph(body, args);
  EXPECT_EQ(count_op(f, "_FusedAttention"), 0) << f.graph.to_string();
  expect_as_eager(body, args, kTolerance);
}

TEST(FuseAttention, EinsumsAreOneOp) {
  for (const std::int64_t queries : {1, 7, 33, 300}) {
    for (const std::int64_t keys : {1, 5, 64, 150}) {
      for (const std::int64_t size : {1, 8, 24, 80})
        expect_fused(einsums(), heads_last(2, queries, keys, 3, size));
    }
  }
}

TEST(FuseAttention, ValuesThatAreGathered) {
  expect_fused(einsums(), heads_last(1, 300, 520, 2, 16));
}

// The mean of so many values is far smaller than they are, and its rounding is not.
TEST(FuseAttention, ManyKeys) { expect_fused(einsums(), heads_last(1, 70, 5000, 1, 16), 1e-5); }

TEST(FuseAttention, TransposesAndAFactorOfTheQueryBelongToIt) {
  expect_fused(turned_products(), heads_last(2, 20, 30, 3, 16));
}

TEST(FuseAttention, ValuesOfAnotherSize) {
  Tensors args = heads_last(2, 20, 30, 3, 16);
  args[2] = numbers({2, 30, 3, 50}, 4);
  expect_fused(einsums(), args);
}

TEST(FuseAttention, KeysThatAllHeadsShare) {
  const Body body = [](const Tensors& in) -> Tensors {
    const Tensor scores = einsum("BTNH,BSH->BNTS", {in[0], in[1]});
    return {einsum("BNTS,BSH->BTNH", {nn::softmax(scores), in[2]})};
  };
  expect_fused(body, {numbers({2, 9, 3, 16}, 1), numbers({2, 11, 16}, 2), numbers({2, 11, 16}, 3)});
}

TEST(FuseAttention, ScoresThatAreTurned) {
  // softmax(transpose(key · queryᵀ)), the values the other way round.
  const Body body = [](const Tensors& in) -> Tensors {
    const Tensor k = transpose(in[1], {0, 2, 1, 3}), q = transpose(in[0], {0, 2, 3, 1});
    const Tensor scores = transpose(matmul(k, q), {0, 1, 3, 2});
    return {einsum("BNTS,BNHS->BTNH", {nn::softmax(scores), transpose(in[2], {0, 2, 3, 1})})};
  };
  expect_fused(body, heads_last(2, 20, 130, 3, 70));
}

TEST(FuseAttention, PlainProductsOnlyOfManyScores) {
  const auto args = [](std::int64_t tokens) {
    return Tensors{numbers({2, 4, tokens, 16}, 1), numbers({2, 4, tokens, 16}, 2),
                   numbers({2, 4, tokens, 16}, 3)};
  };
  expect_not_fused(products(), args(64));
  expect_fused(products(), args(320));
  const Tensors matrices{numbers({900, 8}, 1), numbers({800, 8}, 2), numbers({800, 8}, 3)};
  expect_fused(products(), matrices);
}

TEST(FuseAttention, Masks) {
  const Change filled = [](Tensor scores, const Tensors& in) {
    return where(in[3] > 0.0, scores * 0.3, Tensor(-1e9f));
  };
  const Change added = [](Tensor scores, const Tensors& in) { return in[3] * -1e4 + scores / 3.0; };
  const Change taken = [](Tensor scores, const Tensors& in) { return scores - in[3] * 1e4; };
  const Change lowered = [](Tensor scores, const Tensors& in) {
    return where(in[3] > 0.0, scores, scores - 1e9);
  };
  for (const Change& change : {filled, added, taken, lowered}) {
    for (const Shape& mask : {Shape{2, 1, 1, 40}, Shape{40}, Shape{20, 40}, Shape{2, 3, 20, 40},
                              Shape{2, 1, 20, 1}, Shape{1, 1}}) {
      Tensors args = heads_last(2, 20, 40, 3, 16);
      args.push_back(numbers(mask, 5));
      expect_fused(einsums(change), args);
    }
  }
}

TEST(FuseAttention, MaskOnceMoreAfterTheSoftmax) {
  const Change before = [](Tensor scores, const Tensors& in) {
    return where(in[3] > 0.0, scores, Tensor(-1e9f));
  };
  const Change after = [](Tensor probabilities, const Tensors& in) {
    return where(in[3] > 0.0, probabilities, zeros_like(probabilities));
  };
  Tensors args = heads_last(2, 20, 40, 3, 16);
  args.push_back(numbers({2, 1, 20, 40}, 5));
  expect_fused(einsums(before, after), args);
}

TEST(FuseAttention, RowsThatSeeNothing) {
  const Tensors args = [] {
    Tensors all = heads_last(1, 4, 5, 2, 3);
    all.push_back(Tensor{{-1.0f, -1.0f, -1.0f, -1.0f, -1.0f}});
    return all;
  }();
  for (const float other : {-1e9f, -kInfinity, 0.0f}) {
    expect_fused(einsums([other](Tensor scores, const Tensors& in) {
                   return where(in[3] > 0.0, scores, Tensor(other));
                 }),
                 args);
  }
}

TEST(FuseAttention, NumbersThatAreNotFinite) {
  for (std::size_t at = 0; at < 3; ++at) {
    for (const float bad : {kInfinity, -kInfinity, std::nanf("")}) {
      Tensors args = heads_last(1, 20, 30, 2, 16);
      Array spoilt = args[at].array().clone();
      spoilt.data<float>()[100] = bad;
      args[at] = Tensor(spoilt);
      expect_fused(einsums(), args);
    }
  }
}

TEST(FuseAttention, Empty) {
  expect_fused(einsums(), heads_last(0, 4, 5, 2, 3));
  expect_fused(einsums(), heads_last(2, 0, 5, 2, 3));
  expect_fused(einsums(), heads_last(2, 4, 5, 0, 3));
  expect_fused(einsums(), heads_last(2, 4, 5, 2, 0));
  Tensors args = heads_last(2, 4, 5, 2, 3);
  args[0] = numbers({2, 4, 2, 0}, 1);
  args[1] = numbers({2, 5, 2, 0}, 1);
  expect_fused(einsums(), args);
}

TEST(FuseAttention, NotWhereScoresAreWantedToo) {
  const Body with_scores = [](const Tensors& in) -> Tensors {
    const Tensor p = nn::softmax(einsum("BTNH,BSNH->BNTS", {in[0], in[1]}));
    return {einsum("BNTS,BSNH->BTNH", {p, in[2]}), p};
  };
  const Body with_sum = [](const Tensors& in) -> Tensors {
    const Tensor scores = einsum("BTNH,BSNH->BNTS", {in[0], in[1]});
    return {einsum("BNTS,BSNH->BTNH", {nn::softmax(scores), in[2]}), reduce_sum(scores, {-1})};
  };
  const Tensors args = heads_last(2, 20, 30, 3, 16);
  expect_not_fused(with_scores, args);
  expect_not_fused(with_sum, args);
}

TEST(FuseAttention, NotWhereAGradientNeedsThem) {
  const Body body = [](const Tensors& in) -> Tensors {
    GradientTape tape;
    tape.watch(in[0]);
    const Tensor found = einsums()(in)[0];
    return {tape.gradient(found, in[0])};
  };
  expect_not_fused(body, heads_last(2, 20, 30, 3, 16));
}

// Each operand summed over an axis of its own.
TEST(FuseAttention, NotWhereQueryAndKeyShareNoAxis) {
  const Body body = [](const Tensors& in) -> Tensors {
    const Tensor scores = einsum("BTNH,BSNX->BNTS", {in[0], in[1]});
    return {einsum("BNTS,BSNH->BTNH", {nn::softmax(scores), in[2]})};
  };
  expect_not_fused(body, heads_last(2, 20, 30, 3, 16));
  expect_not_fused(
      body, {numbers({2, 20, 3, 16}, 1), numbers({2, 30, 3, 8}, 2), numbers({2, 30, 3, 16}, 3)});
}

TEST(FuseAttention, NotOverAnotherAxis) {
  const Body over_queries = [](const Tensors& in) -> Tensors {
    const Tensor scores = einsum("BTNH,BSNH->BNST", {in[0], in[1]});
    return {einsum("BNST,BSNH->BTNH", {nn::softmax(scores), in[2]})};
  };
  expect_not_fused(over_queries, heads_last(2, 20, 30, 3, 16));
}

TEST(FuseAttention, NotWithoutRemapping) {
  auto options = config::optimizer::get_experimental_options();
  options.remapping = false;
  config::optimizer::set_experimental_options(options);
  EXPECT_EQ(count_op(optimized_graph(einsums(), heads_last(2, 20, 30, 3, 16)), "_FusedAttention"),
            0);
  config::optimizer::set_experimental_options({});
}

TEST(FuseAttention, SameBitsForAnyNumberOfThreads) {
  const Tensors args = heads_last(2, 600, 300, 2, 32);
  std::vector<Tensor> results;
  for (const int threads : {1, 2, 3}) {
    Runtime::Options options;
    options.intra_op_threads = threads;
    Runtime runtime(options);
    const RuntimeScope scope(runtime);
    results.push_back(function([](Tensors in) { return einsums()(in); })(args)[0]);
  }
  EXPECT_EQ(distance(results[1], results[0]), 0);
  EXPECT_EQ(distance(results[2], results[0]), 0);
}

TEST(FuseAttention, LayersOfOurOwn) {
  const keras::MultiHeadAttention heads(4, 16);
  const Tensor x = numbers({2, 40, 32}, 1), y = numbers({2, 50, 32}, 2);
  heads(x, y);

  const Tensor seen = numbers({2, 40, 50}, 4) > 0.0;
  const std::vector<Body> bodies{
      [=](const Tensors& in) -> Tensors { return {heads(in[0], in[1])}; },
      [=](const Tensors& in) -> Tensors {
        return {heads(in[0], in[1], {.use_causal_mask = true})};
      },
      [=](const Tensors& in) -> Tensors {
        return heads.outputs({in[0], in[1], in[1], seen});
      }};
  for (const Body& body : bodies) {
    const MutableFunction f = optimized_graph(body, {x, y});
    EXPECT_EQ(count_op(f, "_FusedAttention"), 1) << f.graph.to_string();
    EXPECT_EQ(count_op(f, "Softmax"), 0);
    EXPECT_EQ(count_op(f, "Transpose"), 0);
    expect_as_eager(body, {x, y}, kTolerance);
  }
  // Its matrices lie as products take them: only large ones are a gain.
  const Tensor many = numbers({2, 600, 8}, 5), keep = numbers({2, 600}, 6) > 0.0;
  const keras::Attention masked({.use_scale = true});
  masked.outputs({many, many});
  for (const bool causal : {false, true}) {
    const Body body = [=](const Tensors& in) -> Tensors {
      return masked.outputs({in[0], in[1]}, {.use_causal_mask = causal, .mask = {Tensor(), keep}});
    };
    EXPECT_EQ(count_op(optimized_graph(body, {many, many}), "_FusedAttention"), 1);
    expect_as_eager(body, {many, many}, kTolerance);
  }
}

TEST(FuseAttention, ThePeakOfMemoryIsWithoutScores) {
  const Tensors args = heads_last(1, 512, 512, 8, 16);
  const auto peak = [&](bool fused) {
    auto options = config::optimizer::get_experimental_options();
    options.remapping = fused;
    config::optimizer::set_experimental_options(options);
    const auto f = function([](Tensors in) { return einsums()(in); });
    const auto peaks = config::predict_peak_memory(f.concrete(args), args);
    config::optimizer::set_experimental_options({});
    return peaks.at(0).bytes;
  };
  const std::size_t scores = std::size_t{8} * 512 * 512 * sizeof(float);
  EXPECT_LE(peak(true) + scores, peak(false));
}

TEST(FuseAttention, CalledByNameItChecksWhatItIsGiven) {
  using Texts = std::vector<std::string>;
  const Texts softmax{"Softmax"}, axes{"NTD", "NSD", "NTS", "NSE", "NTE"};
  const Tensor q = numbers({2, 3, 4}, 1), k = numbers({2, 5, 4}, 2), v = numbers({2, 5, 6}, 3);
  const auto call = [](const Tensors& in, const Texts& ops, const Texts& names) {
    return raw_op("_FusedAttention", in, {{"fused_ops", ops}, {"axes", names}})[0];
  };
  EXPECT_LE(distance(call({q, k, v}, softmax, axes),
                     matmul(nn::softmax(matmul(q, k, {.transpose_b = true})), v)),
            kTolerance);
  const Tensor keep = Tensor{{true, false, true, true, true}};
  for (const Texts& wrong :
       {Texts{}, Texts{"NTD", "NSD", "NTS", "NSE"}, Texts{"", "", "", "", ""},
        Texts{"TDN", "NSD", "NTS", "NSE", "NTE"}, Texts{"NTD", "NSD", "NST", "NSE", "NTE"},
        Texts{"NTD", "NSD", "NTS", "NSE", "TE"}, Texts{"BTD", "NSD", "NTS", "NSE", "NTE"},
        Texts{"TD", "SD", "TS", "SE", "TE"}, Texts{"NNTD", "NNSD", "NNTS", "NNSE", "NNTE"}})
    EXPECT_THROW(call({q, k, v}, softmax, wrong), InvalidArgumentError) << wrong.size();
  EXPECT_THROW(function([&](Tensors in) { return call(in, softmax, {"NTD"}); })(Tensors{q, k, v}),
               InvalidArgumentError);
  EXPECT_THROW(call({q, v, v}, softmax, axes), InvalidArgumentError);
  EXPECT_THROW(call({q, k, q}, softmax, axes), InvalidArgumentError);
  EXPECT_THROW(call({q, k, v}, {}, axes), InvalidArgumentError);
  EXPECT_THROW(call({q, k, v}, {"Softmax", "Softmax"}, axes), InvalidArgumentError);
  EXPECT_THROW(call({q, k, v}, {"Softmax", "Tanh"}, axes), InvalidArgumentError);
  EXPECT_THROW(call({q, k, v}, {"Mul", "Softmax"}, axes), InvalidArgumentError);
  EXPECT_THROW(call({q, k, v, keep}, {"Mul", "Softmax"}, axes), InvalidArgumentError);
  EXPECT_THROW(call({q, k, v, keep}, {"SelectV2", "Softmax"}, axes), InvalidArgumentError);
  EXPECT_THROW(call({q, k, v, v}, {"Mul", "Softmax"}, axes), InvalidArgumentError);
  EXPECT_THROW(call({q, k, v, v}, softmax, axes), InvalidArgumentError);
  EXPECT_THROW(call({q, numbers({3, 5, 4}, 2), v}, softmax, axes), InvalidArgumentError);
}

}  // namespace
}  // namespace tandem
