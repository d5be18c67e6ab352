// The ways in which td::while_loop takes its loop variables. Values are those of tf.while_loop with
// the same loops.

#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/ops/control_flow.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/variable.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

Tensor below_ten(Tensor i, Tensor) { return i < 10; }
std::pair<Tensor, Tensor> doubled(Tensor i, Tensor v) { return {i + 1, v * 2.0}; }

std::vector<Tensor> doubled_as_list(Tensor i, Tensor v) { return {i + 1, v * 2.0}; }

// Eagerly and traced, from (0, x) to (10, 1024 x).
template <class Loop>
void expect_ten_rounds(Loop loop) {
  const auto both = [&](Tensor x) {
    auto [i, v] = loop(x);
    return std::vector<Tensor>{i, v};
  };
  const Tensor x{1.0, -0.5};
  const auto traced = function(both);
  for (const std::vector<Tensor>& results : {both(x), traced(x)}) {
    EXPECT_EQ(results[0].item<std::int32_t>(), 10);
    EXPECT_EQ(results[1].to_vector<float>(), (std::vector<float>{1024, -512}));
  }
  EXPECT_EQ(traced.num_traces(), 1u);
}

TEST(WhileLoop, TakesLoopVariablesOneByOne) {
  expect_ten_rounds([](Tensor x) { return while_loop(below_ten, doubled, Tensor(0), x); });
  expect_ten_rounds([](Tensor x) {
    return while_loop([](Tensor i, Tensor) { return i < 10; },
                      [](Tensor i, Tensor v) { return std::tuple(i + 1, v * 2.0); }, 0, x);
  });
  expect_ten_rounds([](Tensor x) {
    return while_loop([](auto i, auto) { return i < 10; },
                      [](auto i, auto v) {
                        return std::array<Tensor, 2>{i + 1, v * 2.0};
                      },
                      0, x);
  });
}

TEST(WhileLoop, UnpacksStructures) {
  expect_ten_rounds([](Tensor x) { return while_loop(below_ten, doubled, std::pair(0, x)); });
  expect_ten_rounds([](Tensor x) {
    return while_loop(below_ten, doubled, std::tuple(Tensor(0), x), {.maximum_iterations = 20});
  });
  expect_ten_rounds([](Tensor x) {
    return while_loop(below_ten, doubled, std::array<Tensor, 2>{Tensor(0), x});
  });
  expect_ten_rounds([](Tensor x) {
    const std::vector<Tensor> results = while_loop(
        below_ten,
        [](Tensor i, Tensor v) {
          return std::vector<Tensor>{i + 1, v * 2.0};
        },
        std::vector<Tensor>{Tensor(0), x});
    return std::pair(results[0], results[1]);
  });
}

TEST(WhileLoop, ThreeVariablesOfWhichOneIsAStructure) {
  const auto f = function([](Tensor x) {
    return while_loop([](Tensor i, std::pair<Tensor, Tensor>, Tensor n) { return i < n; },
                      [](Tensor i, std::pair<Tensor, Tensor> p, Tensor n) {
                        return std::tuple(i + 1, std::pair(p.second, p.first + p.second), n);
                      },
                      0, std::pair(Tensor(0.0), x), 10);
  });
  const auto [i, fibonacci, n] = f(Tensor(1.0));
  EXPECT_EQ(i.item<std::int32_t>(), 10);
  EXPECT_EQ(fibonacci.first.item<float>(), 55.0f);
  EXPECT_EQ(n.item<std::int32_t>(), 10);
}

TEST(WhileLoop, ANumberIsATensor) {
  const Tensor last =
      while_loop([](Tensor i) { return i < 10; }, [](Tensor i) { return i + 3; }, 0);
  EXPECT_EQ(last.item<std::int32_t>(), 12);
}

TEST(WhileLoop, GradientsOfVariablesOneByOne) {
  Variable w(Tensor(3.0));
  GradientTape tape;
  const auto power = function([&](Tensor x) {
    return std::get<1>(while_loop([](Tensor i, Tensor) { return i < 3; },
                                  [&](Tensor i, Tensor y) { return std::pair(i + 1, y * w); }, 0,
                                  x));
  });
  const Tensor y = power(Tensor(2.0));
  EXPECT_EQ(tape.gradient(y, w).item<float>(), 2 * 3 * 9.0f);  // of 2 w³
}

TEST(WhileLoop, AListOfAnotherLengthIsAnError) {
  const auto run = [] {
    while_loop(below_ten, doubled_as_list, std::vector<Tensor>{Tensor(0), Tensor(1), Tensor(2)});
  };
  EXPECT_THROW(run(), InvalidArgumentError);
}

}  // namespace
}  // namespace tandem
