// Graphs that TensorFlow refuses, and what their errors say.

#include <string>

#include "tests/unit/io/graph_text_util.h"

namespace tandem::io {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Attrs = std::vector<std::pair<std::string, std::string>>;
const Attrs kT{{"T", kFloatType}};

std::string function(const std::string& name, const std::string& body) {
  return "library { function { signature { name: '" + name +
         "' input_arg { name: 'a' type: DT_FLOAT } output_arg { name: 'o' type: DT_FLOAT } } "
         "node_def { name: 'c' op: '" +
         body + "' input: 'a' attr { key: 'T' value { type: DT_FLOAT } } } " +
         "ret { key: 'o' value: 'c:output:0' } } }";
}

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(RefusedGraph, AFunctionNamedAsAnOp) {
  expect_refused<InvalidArgumentError>(
      placeholder("x") + node("r", "Neg", {"x"}, kT) + function("Neg", "Identity"),
      HasSubstr("Cannot add function 'Neg' of the library because an op with the same name already "
                "exists"));
  EXPECT_NO_THROW(
      import_text(placeholder("x") + node("r", "MyNeg", {"x"}) + function("MyNeg", "Identity")));
}

TEST(RefusedGraph, AFunctionThatCallsItself) {
  const std::string call = R"(library { function {
      signature { name: 'Again' input_arg { name: 'a' type: DT_FLOAT }
                  output_arg { name: 'o' type: DT_FLOAT } }
      node_def { name: 'c' op: 'Again' input: 'a' }
      ret { key: 'o' value: 'c:o:0' } } })";
  expect_refused<InvalidArgumentError>(
      placeholder("x") + node("r", "Again", {"x"}) + call,
      HasSubstr("Functions that call themselves cannot be run: 'Again' calls 'Again'"));
}

TEST(RefusedGraph, ColocationWithANodeThatIsNotThere) {
  const auto with = [](const std::string& group) {
    return placeholder("x") +
           node("r", "Neg", {"x"}, {{"T", kFloatType}, {"_class", "list { s: '" + group + "' }"}});
  };
  for (const std::string missing : {"missing", "", "x:0"}) {
    expect_refused<InvalidArgumentError>(
        with("loc:@" + missing),
        AllOf(HasSubstr("Node 'r' expects to be colocated with unknown node '" + missing + "'"),
              HasSubstr("(Neg)")));
  }
  for (const char* fine : {"loc:@x", "loc:@r", "any note"})
    EXPECT_NO_THROW(import_text(with(fine)));
}

TEST(RefusedGraph, AnEnterWithoutAFrame) {
  const auto enter = [](const Attrs& attrs) {
    return placeholder("x") + node("e", "Enter", {"x"}, attrs) + node("y", "Exit", {"e"}, kT);
  };
  expect_refused<InvalidArgumentError>(
      enter({{"T", kFloatType}, {"frame_name", "s: ''"}}),
      AllOf(HasSubstr("must have a frame name"), HasSubstr("{{node e}} (Enter)")));
  expect_refused<InvalidArgumentError>(enter(kT), HasSubstr("'frame_name'"));
  EXPECT_NO_THROW(import_text(enter({{"T", kFloatType}, {"frame_name", "s: 'f'"}})));
}

TEST(RefusedGraph, BlocksOfMorePixelsThanCanBeCounted) {
  const Attrs block{{"T", kFloatType}, {"block_size", "i: 4294967296"}};
  for (const char* op : {"DepthToSpace", "SpaceToDepth"}) {
    for (const char* format : {"NHWC", "NCHW"}) {
      Attrs attrs = block;
      attrs.emplace_back("data_format", std::string("s: '") + format + "'");
      expect_refused<InvalidArgumentError>(
          placeholder("x", "dim { size: 1 } dim { size: 16 } dim { size: 1 } dim { size: 1 }") +
              node("d", op, {"x"}, attrs),
          AllOf(HasSubstr("multiply to more than 2^63"),
                HasSubstr(std::string("{{node d}} (") + op + ")")));
    }
  }
  for (const char* op : {"SpaceToBatch", "BatchToSpace"}) {
    expect_refused<InvalidArgumentError>(
        placeholder("x", "dim { size: 1 } dim { size: 16 } dim { size: 1 } dim { size: 1 }") +
            ints("p", {0, 0, 0, 0}) + ints("s", {2, 2}) +
            node("q", "Reshape", {"p", "s"}, {{"T", "type: DT_INT32"}}) +
            node("d", op, {"x", "q"}, block),
        HasSubstr(std::string("{{node d}} (") + op + ")"));
  }
}

TEST(RefusedGraph, MissingInputsAreCounted) {
  // Five inputs and the list: six values are one too few.
  std::vector<std::string> inputs(3, "x");
  expect_refused<InvalidArgumentError>(
      placeholder("x") + node("c", "ConcatV2", inputs, {{"T", kFloatType}, {"N", "i: 3"}}),
      HasSubstr("expects 4 inputs but got 3"));
  expect_refused<InvalidArgumentError>(placeholder("x") + node("m", "AddV2", {"x"}, kT),
                                       HasSubstr("expects 2 inputs but got 1"));
}

TEST(RefusedGraph, NamesThatHoldANulAreShownWhole) {
  const std::string text = placeholder("x") + node("bad\\000name", "Neg", {"x"}, kT);
  expect_refused<InvalidArgumentError>(
      text, AllOf(HasSubstr("bad\\x00name"), HasSubstr("invalid characters")));
}

template <class E>
std::string message_of_run(const GraphSession& session,
                           const std::vector<GraphSession::Feed>& feeds) {
  try {
    session.run(feeds, {"out"});
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return cat("another error: ", error.what());
  }
  return "it ran";
}

// Zeros of rank 4, long in one direction.
Array line(DType dtype, int axis, std::int64_t length) {
  std::vector<std::int64_t> dims(4, 1);
  dims[static_cast<std::size_t>(axis)] = length;
  return Array::zeros(dtype, Shape(dims));
}

TEST(RefusedGraph, SizesThatOverflowNameTheNode) {
  constexpr std::int64_t kLength = std::int64_t{1} << 22;  // of three together 2^66 elements
  const std::string condition =
      node("c", "Placeholder", {},
           {{"dtype", "type: DT_BOOL"}, {"shape", "shape { unknown_rank: true }"}});
  const GraphSession session(import_text(condition + placeholder("a") + placeholder("b") +
                                         node("big", "SelectV2", {"c", "a", "b"}, kT) +
                                         node("out", "Neg", {"big"}, kT)));
  EXPECT_THAT(
      message_of_run<InvalidArgumentError>(session, {{"c", line(DType::kBool, 0, kLength)},
                                                     {"a", line(DType::kFloat, 1, kLength)},
                                                     {"b", line(DType::kFloat, 2, kLength)}}),
      AllOf(HasSubstr("2^63"), HasSubstr("{{node big}} (SelectV2)")));
}

TEST(RefusedGraph, MemoryThatIsNotThereNamesTheNodeAndTheSize) {
  constexpr std::int64_t kLength = std::int64_t{1} << 20;
  const GraphSession session(import_text(placeholder("a") + placeholder("b") +
                                         node("big", "AddV2", {"a", "b"}, kT) +
                                         node("out", "Neg", {"big"}, kT)));
  EXPECT_THAT(
      message_of_run<ResourceExhaustedError>(session, {{"a", line(DType::kFloat, 1, kLength)},
                                                       {"b", line(DType::kFloat, 2, kLength)}}),
      AllOf(HasSubstr("43980465111"), HasSubstr("AddV2")));
}

TEST(RefusedGraph, WhatIsNotInALoopIsNotSaidToBe) {
  const GraphSession session(import_text(placeholder("x") + node("neg", "Neg", {"x"}, kT) +
                                         node("y", "Exit", {"neg"}, kT)));
  const Array one = Array::scalar(1.0f);
  for (const char* fed : {"x", "neg"}) {
    EXPECT_THAT(message_of([&] {
                  session.run({{fed, one}}, {"y"});
                }),
                AllOf(HasSubstr("stands outside of a loop: no Enter leads to it"),
                      Not(HasSubstr("lies inside"))));
  }
}

TEST(RefusedGraph, SmallIntegersWrapAsTensorFlowsDo) {
  struct Case {
    const char* dtype;
    std::vector<int> values;
  };
  const std::string numbers =
      "int_val: 7 int_val: 8 int_val: 200 int_val: -9 int_val: -1 int_val: 15 int_val: 16";
  const std::string bytes = R"(tensor_content: "\007\010\310\367\377\017\020")";
  for (const auto& [dtype, values] :
       {Case{"INT4", {7, -8, -8, 7, -1, -1, 0}}, Case{"UINT4", {7, 8, 8, 7, 15, 15, 0}},
        Case{"INT2", {-1, 0, 0, -1, -1, -1, 0}}, Case{"UINT2", {3, 0, 0, 3, 3, 3, 0}}}) {
    for (const std::string& given : {numbers, bytes}) {
      const std::string type = std::string("DT_") + dtype;
      const ImportedGraph graph =
          import_text(node("c", "Const", {},
                           {{"dtype", "type: " + type},
                            {"value", "tensor { dtype: " + type +
                                          " tensor_shape { dim { size: 7 } } " + given + " }"}}));
      const Array& value = *graph.graph->find("c")->attr<std::shared_ptr<const Array>>("value");
      std::vector<int> found;
      for (int i = 0; i < 7; ++i) {
        const bool is_signed = dtype[0] == 'I';
        const auto* data = static_cast<const std::uint8_t*>(value.raw_data());
        found.push_back(is_signed ? static_cast<std::int8_t>(data[i]) : data[i]);
      }
      EXPECT_EQ(found, values) << type << ' ' << given;
    }
  }
}

}  // namespace
}  // namespace tandem::io
