// What an op, a step of a graph and a call of a traced function cost beside the arithmetic.
#include <functional>
#include <vector>

#include <tandem/tandem.h>

#include "bench/common/serve.h"
#include "bench/common/timing.h"

namespace td = tandem;

namespace {

bench::Answer eager_add() {
  const td::Tensor x = 0.5f, one = 1.0f;
  bench::Answer answer;
  answer.value = 1e6 * bench::seconds_per_call([&](std::int64_t n) {
                   td::Tensor y = one;
                   for (std::int64_t i = 0; i < n; ++i) y = td::add(y, x);
                 });
  answer.nodes = 1;
  answer.check = td::add(one, x).item<float>();
  return answer;
}

td::Tensor chain(td::Tensor y, td::Tensor x) {
  for (int i = 0; i < 2000; ++i) y = td::add(y, x);
  return y;
}

td::Tensor wide(td::Tensor y, td::Tensor x) {
  std::vector<td::Tensor> ends;
  for (int i = 0; i < 1000; ++i) ends.push_back(td::add(td::add(y, x), x));
  return td::add_n(ends);
}

// Optimisation is off on both sides: it would remove the work.
std::function<bench::Answer()> graph(td::Tensor (*body)(td::Tensor, td::Tensor)) {
  return [step = td::function(body, {.optimize = false})] {
    const td::Tensor y = 1.0f, x = 0.5f;
    bench::Answer answer;
    constexpr int kArguments = 2;
    answer.nodes = static_cast<double>(step.concrete(y, x).graph().num_nodes()) - kArguments;
    answer.check = step(y, x).item<float>();
    answer.value = 1e9 / answer.nodes * bench::seconds_per_call([&](std::int64_t n) {
                     for (std::int64_t i = 0; i < n; ++i) step(y, x);
                   });
    return answer;
  };
}

bench::Answer function_call() {
  const auto step = td::function([](td::Tensor y, td::Tensor x) { return td::add(y, x); });
  const td::Tensor y = 1.0f, x = 0.5f;
  bench::Answer answer;
  answer.check = step(y, x).item<float>();
  answer.nodes = 1;
  answer.value = 1e6 * bench::seconds_per_call([&](std::int64_t n) {
                   for (std::int64_t i = 0; i < n; ++i) step(y, x);
                 });
  return answer;
}

}  // namespace

int main() {
  td::config::threading::set_intra_op_parallelism_threads(bench::threads());
  td::config::threading::set_inter_op_parallelism_threads(bench::threads());
  return bench::serve({{"eager_add", eager_add},
                       {"graph_chain", graph(chain)},
                       {"graph_wide", graph(wide)},
                       {"function_call", function_call}},
                      "tandem");
}
