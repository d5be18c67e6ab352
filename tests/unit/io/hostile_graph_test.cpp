// Graphs that no tool would write: each is refused with a clear error, at little cost.

#include <chrono>
#include <string>

#include "tandem/core/host_memory.h"

#include "tests/unit/io/graph_text_util.h"

namespace tandem::io {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::vector<std::pair<std::string, std::string>> kT{{"T", kFloatType}};

std::string constant(const std::string& tensor) {
  return node("c", "Const", {}, {{"dtype", kFloatType}, {"value", "tensor { " + tensor + " }"}});
}

TEST(HostileGraph, BytesThatAreNoGraph) {
  for (const std::string& bytes :
       {std::string("\x0a"), std::string("\x0a\xff\xff\xff\xff\x0f"), std::string(30, '\xff'),
        std::string("\x07"), std::string("not a graph at all")}) {
    EXPECT_THROW(import_graph_def(bytes), DataLossError) << bytes;
  }
  expect_refused<DataLossError>("node { name: 'x' ", HasSubstr("line 1"));
  expect_refused<DataLossError>("\nnode { nome: 'x' }",
                                AllOf(HasSubstr("line 2"), HasSubstr("'nome'")));
  expect_refused<DataLossError>("node { name: 'x }", HasSubstr("does not end"));
  expect_refused<DataLossError>("versions { producer: 99999999999 }", HasSubstr("too large"));
}

TEST(HostileGraph, MessagesNestedWithoutEnd) {
  std::string text = "node { name: 'x' op: 'y' attr { key: 'k' value {";
  for (int i = 0; i < 100'000; ++i) text += " func { attr { key: 'k' value {";
  expect_refused<DataLossError>(text, HasSubstr("nested too deep"));
  std::string bytes;  // a shape in a tensor in a variant in a tensor …
  for (int i = 0; i < 500; ++i) {
    std::string length;
    for (std::size_t n = bytes.size();; n >>= 7) {
      length += static_cast<char>(n >= 0x80 ? (n & 0x7f) | 0x80 : n);
      if (n < 0x80) break;
    }
    bytes = (i % 2 ? "\x7a" : "\x1a") + length + bytes;
  }
  std::string length;
  for (std::size_t n = bytes.size();; n >>= 7) {
    length += static_cast<char>(n >= 0x80 ? (n & 0x7f) | 0x80 : n);
    if (n < 0x80) break;
  }
  EXPECT_NO_THROW(import_graph_def("\x12" + length + bytes)) << "no such field there: passed over";
}

TEST(HostileGraph, NamesThatDoNotAddUp) {
  expect_refused<InvalidArgumentError>(placeholder("x") + placeholder("x"),
                                       HasSubstr("another node of that name"));
  expect_refused<InvalidArgumentError>(placeholder(""), HasSubstr("has no name"));
  expect_refused<InvalidArgumentError>(placeholder("a:0"), HasSubstr("can't hold"));
  expect_refused<InvalidArgumentError>(node("y", "Relu", {"x"}, kT),
                                       HasSubstr("'x' refers to a node that does not exist"));
  expect_refused<InvalidArgumentError>(node("y", "NoOp", {"^x"}),
                                       HasSubstr("'^x' refers to a node that does not exist"));
  expect_refused<InvalidArgumentError>(placeholder("x") + node("y", "Relu", {"x:1"}, kT),
                                       AllOf(HasSubstr("has 1 outputs"), HasSubstr("output 1")));
  for (const char* input : {"x:-1", "x:99999999999", "x:", "x:1x", "x:0:0"})
    expect_refused<InvalidArgumentError>(placeholder("x") + node("y", "Relu", {input}, kT), _);
  expect_refused<InvalidArgumentError>(placeholder("x") + node("y", "Relu", {"^x", "x"}, kT),
                                       HasSubstr("after a control input"));
  expect_refused<InvalidArgumentError>(placeholder("x") + node("y", "Relu", {"x", "x"}, kT), _);
  expect_refused<InvalidArgumentError>(node("y", "Relu", {}, kT), _);
}

TEST(HostileGraph, Cycles) {
  expect_refused<InvalidArgumentError>(node("a", "Relu", {"b"}, kT) + node("b", "Relu", {"a"}, kT),
                                       AllOf(HasSubstr("cycle"), HasSubstr("'a'")));
  expect_refused<InvalidArgumentError>(node("a", "Relu", {"a"}, kT), HasSubstr("cycle"));
  expect_refused<InvalidArgumentError>(node("a", "NoOp", {"^b"}) + node("b", "NoOp", {"^a"}),
                                       HasSubstr("cycle"));
  // Through a Merge that no NextIteration leads to.
  expect_refused<InvalidArgumentError>(
      node("m", "Merge", {"r", "r"}, {{"T", kFloatType}, {"N", "i: 2"}}) +
          node("r", "Relu", {"m"}, kT),
      HasSubstr("cycle"));
  // Nothing enters the loop.
  expect_refused<InvalidArgumentError>(
      node("m", "Merge", {"n", "n"}, {{"T", kFloatType}, {"N", "i: 2"}}) +
          node("n", "NextIteration", {"m"}, kT),
      HasSubstr("m"));
}

TEST(HostileGraph, ShapesAndSizes) {
  expect_refused<InvalidArgumentError>(placeholder("x", "dim { size: -2 }"), HasSubstr("-2"));
  expect_refused<InvalidArgumentError>(
      placeholder("x", "dim { size: 9000000000000000000 } dim { size: 9000000000000000000 }"), _);
  std::string many;
  for (int i = 0; i < 300; ++i) many += "dim { size: 1 } ";
  expect_refused<InvalidArgumentError>(placeholder("x", many), HasSubstr("300 dimensions"));
  expect_refused<InvalidArgumentError>(
      placeholder("x") +
          node("y", "Split", {"d", "x"}, {{"T", kFloatType}, {"num_split", "i: 4000000000"}}) +
          ints("d", {0}),
      _);
  expect_refused<InvalidArgumentError>(
      placeholder("x") +
          node("y", "Unpack", {"x"},
               {{"T", kFloatType}, {"num", "i: 9223372036854775807"}, {"axis", "i: 0"}}),
      HasSubstr("outputs"));
}

TEST(HostileGraph, ConstantsThatAnnounceWhatIsNotThere) {
  const std::size_t before = host_memory_stats().peak;
  const std::string gigabytes = "dtype: DT_FLOAT tensor_shape { dim { size: 1000000000 } } ";
  expect_refused<InvalidArgumentError>(constant(gigabytes), HasSubstr("holds 0 elements"));
  expect_refused<InvalidArgumentError>(constant(gigabytes + "tensor_content: 'abcd'"),
                                       HasSubstr("4000000000 bytes, but holds 4"));
  expect_refused<InvalidArgumentError>(constant(gigabytes + "float_val: 1 float_val: 2"), _);
  expect_refused<InvalidArgumentError>(constant(gigabytes + "float_val: 1"), _);
  expect_refused<InvalidArgumentError>(
      constant("dtype: DT_FLOAT tensor_shape { dim { size: 4000000000000000000 } } float_val: 1"),
      _);
  expect_refused<InvalidArgumentError>(
      constant("dtype: DT_FLOAT tensor_shape { dim { size: -1 } } float_val: 1"),
      HasSubstr("shape"));
  expect_refused<InvalidArgumentError>(
      constant("dtype: DT_FLOAT tensor_shape { unknown_rank: true }"), HasSubstr("shape"));
  expect_refused<InvalidArgumentError>(constant("dtype: DT_FLOAT tensor_content: 'abc'"), _);
  expect_refused<InvalidArgumentError>(constant("dtype: DT_INT32 int_val: 1"),
                                       HasSubstr("'dtype' says DT_FLOAT"));
  expect_refused<InvalidArgumentError>(constant("dtype: DT_INVALID"), HasSubstr("DT_INVALID"));
  expect_refused<InvalidArgumentError>(
      node("c", "Const", {},
           {{"dtype", "type: DT_STRING"},
            {"value",
             "tensor { dtype: DT_STRING tensor_shape { dim { size: 2 } } tensor_content: "
             "'\\377\\377\\003' }"}}),
      HasSubstr("cut off"));
  EXPECT_LT(host_memory_stats().peak - before, std::size_t{64} << 20);
}

TEST(HostileGraph, AttributesOfAnotherKind) {
  expect_refused<InvalidArgumentError>(
      placeholder("x") + node("y", "Relu", {"x"}, {{"T", "i: 1"}}),
      AllOf(HasSubstr("'y'"), HasSubstr("'T'"), HasSubstr("must be of kind type but is int")));
  expect_refused<InvalidArgumentError>(placeholder("x") + node("y", "Relu", {"x"}, {{"T", ""}}),
                                       HasSubstr("is nothing"));
  expect_refused<InvalidArgumentError>(
      placeholder("x") + node("y", "Relu", {"x"}, {{"T", "list { type: DT_FLOAT }"}}), _);
  expect_refused<InvalidArgumentError>(
      placeholder("x") + node("y", "Relu", {"x"}, {{"T", "placeholder: 'T'"}}), _);
  expect_refused<InvalidArgumentError>(
      placeholder("x") + node("y", "Relu", {"x"}, {{"T", "type: 77"}}), HasSubstr("77"));
  expect_refused<InvalidArgumentError>(placeholder("x") + node("y", "PartitionedCall", {"x"},
                                                               {{"Tin", "list { type: DT_FLOAT }"},
                                                                {"Tout", "list { type: DT_FLOAT }"},
                                                                {"f", "func { name: 'nowhere' }"}}),
                                       HasSubstr("'nowhere'"));
  expect_refused<InvalidArgumentError>(
      node("x", "Placeholder", {}, {{"dtype", kFloatType}, {"shape", "s: 'abc'"}}), _);
}

std::string function(const std::string& name, const std::string& body, const std::string& result) {
  return "library { function { signature { name: '" + name +
         "' input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'y' type: DT_FLOAT } } " +
         body + " ret { key: 'y' value: '" + result + "' } } }\n";
}

TEST(HostileGraph, Functions) {
  const std::string call = placeholder("x") + node("y", "f", {"x"});
  const auto calls = [](const std::string& f) {
    return "node_def { name: 'c' op: '" + f + "' input: 'x' }";
  };
  expect_refused<InvalidArgumentError>(call + function("f", calls("f"), "c:y:0"),
                                       HasSubstr("'f' calls 'f'"));
  expect_refused<InvalidArgumentError>(
      call + function("f", calls("g"), "c:y:0") + function("g", calls("f"), "c:y:0"),
      HasSubstr("'f' calls 'g' calls 'f'"));
  std::string chain;
  for (int i = 0; i < 5000; ++i)
    chain += function("f" + std::to_string(i), calls("f" + std::to_string(i + 1)), "c:y:0");
  expect_refused<InvalidArgumentError>(placeholder("x") + node("y", "f0", {"x"}) + chain,
                                       HasSubstr("through more than"));
  // Each calls the next twice: as many calls as 2 to the power of 60, but 60 functions.
  std::string doubling;
  for (int i = 0; i < 60; ++i) {
    const std::string next = "f" + std::to_string(i + 1);
    doubling += function("f" + std::to_string(i),
                         calls(next) + " node_def { name: 'd' op: '" + next + "' input: 'c:y:0' }",
                         "d:y:0");
  }
  doubling += function("f60", "", "x");
  EXPECT_EQ(import_text(placeholder("x") + node("y", "f0", {"x"}) + doubling).functions.size(),
            61u);

  expect_refused<InvalidArgumentError>(call + function("f", "", "x") + function("f", "", "x"),
                                       HasSubstr("in the library twice"));
  expect_refused<InvalidArgumentError>(call + function("f", "", "nothing:y:0"),
                                       HasSubstr("nothing"));
  expect_refused<InvalidArgumentError>(
      call + function("f", calls("g"), "c:z:0") + function("g", "", "x"), HasSubstr("'c:z:0'"));
  expect_refused<InvalidArgumentError>(
      call + function("f", calls("g"), "c:y:7") + function("g", "", "x"), _);
  expect_refused<InvalidArgumentError>(
      call +
          "library { function { signature { name: 'f' output_arg { name: 'y' type: DT_FLOAT } } "
          "} }",
      HasSubstr("'y'"));
  // Called with other values than it takes, or for more results than it has.
  expect_refused<InvalidArgumentError>(
      placeholder("x") +
          node("y", "PartitionedCall", {"x", "x"},
               {{"Tin", "list { type: DT_FLOAT type: DT_FLOAT }"},
                {"Tout", "list { type: DT_FLOAT }"},
                {"f", "func { name: 'f' }"}}) +
          function("f", "", "x"),
      HasSubstr("takes [float] but is called with [float, float]"));
  expect_refused<InvalidArgumentError>(placeholder("x") +
                                           node("y", "PartitionedCall", {"x"},
                                                {{"Tin", "list { type: DT_FLOAT }"},
                                                 {"Tout", "list { type: DT_FLOAT type: DT_INT32 }"},
                                                 {"f", "func { name: 'f' }"}}) +
                                           function("f", "", "x"),
                                       HasSubstr("returns [float] but [float, int32] is expected"));
  // The index chooses a branch and is no argument of it.
  const auto chosen = [](const std::vector<std::string>& inputs, const std::string& types) {
    return placeholder("x") + ints("i", {0}) +
           node("y", "StatelessCase", inputs,
                {{"Tin", "list { " + types + " }"},
                 {"Tout", "list { type: DT_FLOAT }"},
                 {"branches", "list { func { name: 'f' } }"}}) +
           function("f", "", "x");
  };
  EXPECT_NO_THROW(import_text(chosen({"i", "x"}, "type: DT_FLOAT")));
  expect_refused<InvalidArgumentError>(
      chosen({"i", "x", "x"}, "type: DT_FLOAT type: DT_FLOAT"),
      HasSubstr("takes [float] but is called with [float, float]"));
}

TEST(HostileGraph, EveryCutOfAGraphIsRefusedOrRead) {
  // In binary form: node { name: "x" op: "NoOp" } node { name: "y" op: "NoOp" input: "^x" }.
  const std::string graph("\x0a\x09\x0a\x01x\x12\x04NoOp\x0a\x0d\x0a\x01y\x12\x04NoOp\x1a\x02^x",
                          26);
  EXPECT_EQ(import_graph_def(graph).graph->num_nodes(), 2u);
  for (std::size_t size = 0; size < graph.size(); ++size) {
    try {
      import_graph_def(std::string_view(graph).substr(0, size));
      EXPECT_TRUE(size == 0 || size == 11) << size;
    } catch (const DataLossError&) {
    }
  }
  for (std::size_t at = 0; at < graph.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = graph;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      try {
        import_graph_def(changed);
      } catch (const Error&) {
      }
    }
  }
}

}  // namespace
}  // namespace tandem::io
