#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/graph/graph.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/op_registry.h"
#include "tandem/graph/passes.h"

namespace tandem {

/// The registry of this process, with the ops that graph_util.cpp declares for the tests:
///   TestConst  TestArg  TestAdd  TestSplitInTwo  TestJoin  TestTuple  TestEffect  TestShapeOf
///   TestPack TestElement  TestReshape  TestNegate
const OpRegistry& test_ops();

/// Builds a graph line by line.
class Builder {
 public:
  Node* arg(const std::string& name, DType dtype, const PartialShape& shape);
  Node* constant(const std::string& name, const Array& value);
  Node* add(std::string_view op, const std::string& name, std::vector<Output> inputs,
            AttrMap attrs = {});

  Graph graph;
  std::vector<Node*> args;
};

/// Adds arrays where passes ask for a TestAdd of floats; counts what it was asked.
class AddingEvaluator final : public Evaluator {
 public:
  std::optional<std::vector<Array>> evaluate(const Node& node,
                                             std::span<const Array> inputs) override;
  int asked = 0;
};

/// Runs `f`, which must throw an E, and returns its message.
template <class E, class F>
std::string thrown(F f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
    return "";
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace tandem
