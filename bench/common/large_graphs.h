// How the time to the first result of a graph grows with its nodes.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <tandem/io/graph_def.h>
#include <tandem/io/graph_session.h>

#include "bench/common/timing.h"

namespace bench {

enum class LargeGraph {
  kWide,       // one AddN of many Tanh of one input
  kConstants,  // one AddN of many products with constants that differ
  kOutputs,    // one AddN of all outputs of an Unpack, each through Tanh and Identity
  kChain,      // one Tanh after the other
};

// In text form, with a fed vector "x" and a result "out".
inline std::string large_graph(LargeGraph kind, int size) {
  const std::string type = " attr { key: 'T' value { type: DT_FLOAT } }";
  const auto node = [&](const std::string& name, const char* op, const std::string& inputs,
                        const std::string& attrs) {
    return "node { name: '" + name + "' op: '" + op + "'" + inputs + attrs + " }\n";
  };
  const auto input = [](const std::string& name) { return " input: '" + name + "'"; };
  std::string text =
      node("x", "Placeholder", "", " attr { key: 'dtype' value { type: DT_FLOAT } }");
  std::string all, before = "x";
  if (kind == LargeGraph::kOutputs) {
    text += node("u", "Unpack", input("x"),
                 type + " attr { key: 'num' value { i: " + std::to_string(size) + " } }");
  }
  for (int i = 0; i < size; ++i) {
    const std::string number = std::to_string(i), name = "t" + number;
    switch (kind) {
      case LargeGraph::kWide: text += node(name, "Tanh", input("x"), type); break;
      case LargeGraph::kConstants:
        text += node("c" + number, "Const", "",
                     " attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'value' value { "
                     "tensor { dtype: DT_FLOAT tensor_shape { } float_val: " +
                         number + " } } }") +
                node(name, "Mul", input("x") + input("c" + number), type);
        break;
      case LargeGraph::kOutputs:
        text += node("u" + number, "Tanh", input("u:" + number), type) +
                node(name, "Identity", input("u" + number), type);
        break;
      case LargeGraph::kChain:
        text += node(name, "Tanh", input(before), type);
        before = name;
        break;
    }
    all += input(name);
  }
  if (kind == LargeGraph::kChain) return text + node("out", "Tanh", input(before), type);
  return text + node("out", "AddN", all,
                     type + " attr { key: 'N' value { i: " + std::to_string(size) + " } }");
}

// Seconds from a graph that has been read to the first result: optimising it, placing it, making a
// plan and running it once.
inline double seconds_to_first_result(LargeGraph kind, int size) {
  namespace td = tandem;
  td::io::ImportOptions options;
  options.format = td::io::GraphFormat::kText;
  td::Array x(td::DType::kFloat, td::Shape{kind == LargeGraph::kOutputs ? size : 4});
  std::fill_n(x.data<float>(), x.num_elements(), 0.5f);
  td::io::ImportedGraph graph = td::io::import_graph_def(large_graph(kind, size), options);
  const double start = now();
  const td::io::GraphSession session(std::move(graph));
  session.run({{"x", x}}, {"out"});
  return now() - start;
}

// The time at twice the size over the time at the size: 2 where it is linear, 4 where it is
// quadratic. The median of five.
inline double growth_of_first_result(LargeGraph kind, int size) {
  std::vector<double> ratios;
  for (int i = 0; i < 5; ++i) {
    const double once = seconds_to_first_result(kind, size);
    ratios.push_back(seconds_to_first_result(kind, 2 * size) / once);
  }
  std::nth_element(ratios.begin(), ratios.begin() + 2, ratios.end());
  return ratios[2];
}

}  // namespace bench
