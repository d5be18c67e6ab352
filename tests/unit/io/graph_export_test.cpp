#include "tandem/io/graph_export.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/io/graph_session.h"
#include "tandem/tandem.h"

#include "tests/unit/folder.h"

namespace tandem::io {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What a session computes with the exported graph.
std::vector<Array> run(const ExportedGraph& graph, const std::vector<Tensor>& inputs,
                       GraphFormat format = GraphFormat::kBinary) {
  ImportOptions options;
  options.format = format;
  const GraphSession session(import_graph_def(graph.bytes, options));
  if (!graph.init.empty()) session.run({}, {}, {graph.init});
  std::vector<GraphSession::Feed> feeds;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    feeds.push_back({graph.inputs.at(i), inputs[i].array()});
  return session.run(feeds, graph.outputs, graph.targets);
}

TEST(GraphExport, ComesBackTheSame) {
  const Tensor outside{{1.0, 2.0}, {3.0, 4.0}};
  auto f = function([&](Tensor x) { return std::vector<Tensor>{matmul(x, outside), x}; });
  const Tensor x{{1.0, -1.0}};
  for (const GraphFormat format : {GraphFormat::kBinary, GraphFormat::kText}) {
    const ExportedGraph graph = export_graph_def(
        f.concrete(x), {.format = format, .inputs = {"in"}, .outputs = {"a", "b"}});
    EXPECT_THAT(graph.inputs, ElementsAre("in:0"));
    EXPECT_THAT(graph.outputs, ElementsAre("a:0", "b:0"));
    const auto values = run(graph, {x}, format);
    EXPECT_EQ(values[0], f(x)[0].array());
    EXPECT_EQ(values[1], x.array());
  }
}

TEST(GraphExport, TextIsReadWhateverTheFilesName) {
  const Folder folder;
  auto f = function([](Tensor x) { return x + x; });
  const Tensor x{1.0, 2.0};
  for (const char* name : {"x.pbtxt", "x.pb"}) {
    const ExportedGraph graph = write_graph_def(
        folder.file(name), f.concrete(x), {.format = GraphFormat::kText, .outputs = {"twice"}});
    const GraphSession session(read_graph_def(folder.file(name)));
    EXPECT_EQ(session.run({{graph.inputs.at(0), x.array()}}, {"twice"})[0],
              Array::vector<float>({2, 4}))
        << name;
  }
}

TEST(GraphExport, TextMayBeginWithBlanks) {
  const Folder folder;
  auto f = function([](Tensor x) { return x + x; });
  const ExportedGraph graph =
      export_graph_def(f.concrete(Tensor{1.0}), {.format = GraphFormat::kText});
  for (const char* beginning : {" \r\n\t", "\n# A comment\n", "#\n", "version: 1 # old\n"}) {
    fs::write_file(folder.file("x.pb"), beginning + graph.bytes);
    EXPECT_NO_THROW(read_graph_def(folder.file("x.pb"))) << beginning;
  }
}

// Beginnings that might be taken for text.
TEST(GraphExport, BinaryIsReadWhateverItsFirstNodesLength) {
  const Folder folder;
  const std::string comment = "\n\x1b" + std::string(27, 'n') + "\x12\x04NoOp";
  ASSERT_EQ(comment.size(), '#');
  fs::write_file(folder.file("x"), "\n#" + comment);
  EXPECT_NO_THROW(read_graph_def(folder.file("x")));
  const std::string blank = "\n\nnode_group\x12\x04NoOp\x1a\x0c^" + std::string(11, 'i');
  ASSERT_EQ(blank.size(), ' ');
  fs::write_file(folder.file("x"),
                 "\n " + blank + "\n\x13\n\x0b" + std::string(11, 'i') + "\x12\x04NoOp");
  EXPECT_NO_THROW(read_graph_def(folder.file("x")));
}

TEST(GraphExport, IsTheSameBytesEachTime) {
  auto f = function([](Tensor x) { return x + x; });
  const Tensor x{1.0, 2.0};
  EXPECT_EQ(export_graph_def(f.concrete(x)).bytes, export_graph_def(f.concrete(x)).bytes);
}

TEST(GraphExport, VariablesAreFrozenOrKept) {
  const Variable v(2.0f);
  auto read = function([&](Tensor x) { return x * v.read_value(); });
  auto change = function([&](Tensor x) {
    v.assign_add(x);
    return v.read_value();
  });
  const Tensor x(3.0f);
  EXPECT_EQ(run(export_graph_def(read.concrete(x)), {x})[0], Array::scalar(6.0f));
  EXPECT_TRUE(export_graph_def(read.concrete(x)).init.empty());
  try {
    export_graph_def(change.concrete(x));
    ADD_FAILURE() << "a changed variable was frozen";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("kKeep"));
  }
  const ExportedGraph kept =
      export_graph_def(change.concrete(x), {.variables = ExportVariables::kKeep});
  EXPECT_EQ(kept.init, "init");
  EXPECT_EQ(run(kept, {x})[0], Array::scalar(5.0f));
}

TEST(GraphExport, TakesAlongWhatIsCalled) {
  auto inner = function([](Tensor a) { return a * a; });
  auto outer = function([&](Tensor x) {
    return cond(
        reduce_sum(x) > 0.0, [&] { return inner(x); }, [&] { return inner(x) + x; });
  });
  for (const Tensor& x : {Tensor{1.0, 2.0}, Tensor{-1.0, -2.0}})
    EXPECT_EQ(run(export_graph_def(outer.concrete(x)), {x})[0], outer(x).array());
}

TEST(GraphExport, ASwitchComesBackWithItsGradient) {
  auto f = function([](Tensor index, Tensor x) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = switch_case(
        index, std::vector<std::function<Tensor()>>{
                   [&] { return x * 2.0; }, [&] { return sin(x) * x; }, [&] { return exp(x); }});
    return std::vector<Tensor>{y, tape.gradient(y, x)};
  });
  const Tensor x{0.5, -2.0};
  for (const int i : {-1, 0, 1, 2, 3}) {
    const Tensor index(i);
    const auto values = run(export_graph_def(f.concrete(index, x)), {index, x});
    EXPECT_EQ(values[0], f(index, x)[0].array()) << i;
    EXPECT_EQ(values[1], f(index, x)[1].array()) << i;
  }
}

TEST(GraphExport, TablesComeAlongFilled) {
  const lookup::StaticHashTable ids(
      lookup::KeyValueTensorInitializer{.keys = Tensor{"salt", "pepper"},
                                        .values = tensor<std::int64_t>({4, 7})},
      -1);
  const lookup::StaticVocabularyTable words(
      lookup::KeyValueTensorInitializer{.keys = Tensor{"salt", "thyme"},
                                        .values = tensor<std::int64_t>({0, 1})},
      3);
  auto inner = function([&](Tensor x) { return words.lookup(x); });
  auto f = function([&](Tensor x) {
    const Tensor found = cond(
        reduce_any(equal(ids.lookup(x), Tensor(std::int64_t{7}))), [&] { return inner(x); },
        [&] { return ids.lookup(x) * Tensor(std::int64_t{2}); });
    return std::vector<Tensor>{ids.lookup(x), found, ids.size()};
  });
  for (const Tensor& x : {Tensor{"pepper", "thyme", "mint"}, Tensor{"salt", "mint"}}) {
    const auto expected = f(x);
    for (const ExportVariables variables : {ExportVariables::kFreeze, ExportVariables::kKeep}) {
      const ExportedGraph graph = export_graph_def(f.concrete(x), {.variables = variables});
      EXPECT_EQ(graph.init, variables == ExportVariables::kKeep ? "init" : "");
      Runtime runtime;
      const RuntimeScope scope(runtime);
      for (int step = 0; step < 2; ++step) {
        const auto values = run(graph, {x});
        for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], expected[i].array());
      }
    }
  }
}

// Two graphs in one runtime: a table is found by its name.
TEST(GraphExport, OtherTablesHaveOtherNames) {
  const auto exported = [](std::int64_t value) {
    const lookup::StaticHashTable table(
        lookup::KeyValueTensorInitializer{.keys = Tensor{"salt"},
                                          .values = tensor<std::int64_t>({value})},
        -1);
    auto f = function([&](Tensor x) { return table.lookup(x); });
    return export_graph_def(f.concrete(Tensor{"salt"}));
  };
  const ExportedGraph one = exported(1), two = exported(2);
  EXPECT_EQ(run(one, {Tensor{"salt"}})[0], tensor<std::int64_t>({1}).array());
  EXPECT_EQ(run(two, {Tensor{"salt"}})[0], tensor<std::int64_t>({2}).array());
  EXPECT_EQ(one.bytes, exported(1).bytes);
}

// A table's name follows from what is in it, not from how that came in.
TEST(GraphExport, EqualTablesAreTheSameBytes) {
  std::vector<std::string> words;
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < 50; ++i) {
    words.push_back(cat("word ", i));
    numbers.push_back(i * i - 100);
  }
  const auto exported = [&] {
    const lookup::StaticHashTable ids(
        lookup::KeyValueTensorInitializer{.keys = Tensor::from(words),
                                          .values = Tensor::from(numbers)},
        -1);
    const lookup::StaticHashTable names(
        lookup::KeyValueTensorInitializer{.keys = Tensor::from(numbers),
                                          .values = Tensor::from(words)},
        "?");
    auto f = function([&](Tensor x) { return names.lookup(ids.lookup(x)); });
    return export_graph_def(f.concrete(Tensor{"word 7"}));
  };
  const ExportedGraph graph = exported();
  std::reverse(words.begin(), words.end());
  std::reverse(numbers.begin(), numbers.end());
  EXPECT_EQ(graph.bytes, exported().bytes);
  EXPECT_EQ(run(graph, {Tensor{"word 7"}})[0], Tensor{"word 7"}.array());
}

TEST(GraphExport, ATableThatIsNotFilledYetIsRefused) {
  const Tensor table = raw_op("AnonymousHashTable", {},
                              {{"key_dtype", DType::kString}, {"value_dtype", DType::kInt64}})[0];
  auto find = function([&](Tensor x) {
    return raw_op("LookupTableFindV2", {table, x, tensor<std::int64_t>({0})})[0];
  });
  const ConcreteFunction concrete = find.concrete(Tensor{"salt"});
  try {
    export_graph_def(concrete);
    ADD_FAILURE() << "an empty table was exported";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("can't be exported"), HasSubstr("a table from string[] to int64[]"),
                      HasSubstr("LookupTableFindV2"), HasSubstr("not initialized")));
  }
  raw_op("InitializeTableV2", {table, Tensor{"salt"}, tensor<std::int64_t>({4})});
  EXPECT_EQ(run(export_graph_def(concrete), {Tensor{"salt"}})[0],
            tensor<std::int64_t>({4}).array());
}

TEST(GraphExport, OtherResourcesAreRefused) {
  const lookup::MutableHashTable table(DType::kInt64, DType::kFloat, Tensor(0.0f));
  auto find = function([&](Tensor x) { return table.lookup(x); });
  const Tensor queue =
      raw_op("FIFOQueueV2", {}, {{"component_types", std::vector<DType>{DType::kFloat}}})[0];
  auto dequeue = function([&](Tensor x) {
    return x + raw_op("QueueDequeueV2", {queue},
                      {{"component_types", std::vector<DType>{DType::kFloat}}})[0];
  });
  const Tensor list =
      raw_op("EmptyTensorList", {Tensor(-1), Tensor(3)}, {{"element_dtype", DType::kFloat}})[0];
  auto push = function([&](Tensor x) {
    const Tensor more = raw_op("TensorListPushBack", {list, x})[0];
    return raw_op("TensorListLength", {more})[0];
  });
  const auto messages = [](const ConcreteFunction& f) {
    std::vector<std::string> all;
    for (const ExportVariables variables : {ExportVariables::kFreeze, ExportVariables::kKeep}) {
      try {
        export_graph_def(f, {.variables = variables});
        all.emplace_back("exported");
      } catch (const UnimplementedError& error) {
        all.emplace_back(error.what());
      }
    }
    return all;
  };
  EXPECT_THAT(messages(find.concrete(tensor<std::int64_t>({1}))),
              Each(AllOf(HasSubstr("a mutable table from int64[] to float[]"),
                         HasSubstr("LookupTableFindV2"), HasSubstr("as an argument"))));
  EXPECT_THAT(messages(dequeue.concrete(Tensor(1.0f))),
              Each(AllOf(HasSubstr("queue of kind"), HasSubstr("QueueDequeueV2"))));
  EXPECT_THAT(messages(push.concrete(Tensor{1.0, 2.0, 3.0})),
              Each(AllOf(HasSubstr("a variant"), HasSubstr("TensorListPushBack"))));
}

// Neither resources that can't be exported nor variables of which no result comes.
TEST(GraphExport, WhatNoResultNeedsIsLeftOut) {
  const lookup::MutableHashTable table(DType::kInt64, DType::kFloat, Tensor(0.0f));
  const Variable unused(2.0f);
  auto f = function([&](Tensor x) {
    table.lookup(cast(x, DType::kInt64));
    unused.read_value();
    return x + 1.0;
  });
  const Tensor x{1.0, 2.0};
  ASSERT_EQ(f.concrete(x).captures().size(), 3u);  // with what unknown keys have
  for (const ExportVariables variables : {ExportVariables::kFreeze, ExportVariables::kKeep}) {
    const ExportedGraph graph = export_graph_def(f.concrete(x), {.variables = variables});
    EXPECT_EQ(graph.init, "");
    EXPECT_EQ(run(graph, {x})[0], f(x).array());
  }
}

TEST(GraphExport, ChecksTheNamesGiven) {
  auto f = function([](Tensor x) { return x + 1.0; });
  EXPECT_THROW(export_graph_def(f.concrete(Tensor(1.0f)), {.inputs = {"a", "b"}}),
               InvalidArgumentError);
  EXPECT_THROW(export_graph_def(f.concrete(Tensor(1.0f)), {.outputs = {"a", "b"}}),
               InvalidArgumentError);
}

TEST(GraphExport, GivesTheNamesAskedForFirst) {
  const Tensor outside{{1.0, 2.0}, {3.0, 4.0}};
  auto f = function([&](Tensor x) { return matmul(x, outside) + 1.0; });
  const Tensor x{{1.0, -1.0}};
  // Nodes of these names are in the graph already.
  const ExportedGraph graph =
      export_graph_def(f.concrete(x), {.inputs = {"Const"}, .outputs = {"MatMul"}});
  EXPECT_THAT(graph.inputs, ElementsAre("Const:0"));
  EXPECT_THAT(graph.outputs, ElementsAre("MatMul:0"));
  EXPECT_EQ(run(graph, {x})[0], f(x).array());
}

TEST(GraphExport, RefusesImpossibleNames) {
  auto f = function([](Tensor x) { return x + 1.0; });
  const ConcreteFunction concrete = f.concrete(Tensor(1.0f));
  for (const char* name : {"", "a b", "a:0", "_a", "^a", "-"}) {
    try {
      export_graph_def(concrete, {.outputs = {name}});
      ADD_FAILURE() << "'" << name << "' was taken";
    } catch (const InvalidArgumentError& error) {
      EXPECT_THAT(error.what(), HasSubstr(cat("'", name, "'")));
    }
  }
  for (const char* name : {"a/b_c-d>e.0", ".x", "0"}) {
    EXPECT_THAT(export_graph_def(concrete, {.outputs = {name}}).outputs,
                ElementsAre(cat(name, ":0")));
  }
  EXPECT_THROW(export_graph_def(concrete, {.inputs = {"z"}, .outputs = {"z"}}),
               InvalidArgumentError);
}

}  // namespace
}  // namespace tandem::io
