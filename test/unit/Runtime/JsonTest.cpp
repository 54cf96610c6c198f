#include "spmd/Runtime/Core/Json.h"
#include "TestSupport.h"

using namespace spmd::runtime;

/// The error of reading `text` with `read`.
template <typename Read>
static std::string errorOf(const char *text, const Read &read) {
  JsonDocument document("file", text);
  read(document.root());
  EXPECT_EQ(document.status().code, StatusCode::BadInput);
  return document.status().message;
}

TEST(Json, NamesThePlace) {
  EXPECT_EQ(errorOf(R"({"a": [1, {"b/c": "x"}]})",
                    [](JsonValue root) {
                      root["a"].forEach([](JsonValue element) {
                        if (element.has("b/c"))
                          element["b/c"].asInt();
                      });
                    }),
            "file: /a/1/b~1c: expected an integer, found \"x\"");
  EXPECT_EQ(errorOf(R"({"a": {}})", [](JsonValue root) { root["a"]["b"]["c"].asInt(); }), "file: /a/b: is missing");
  EXPECT_EQ(errorOf("[]", [](JsonValue root) { root["a"].asInt(); }), "file: /: expected an object, found array");
}

TEST(Json, KeepsTheFirstError) {
  JsonDocument document("file", R"({"a": 1.5, "b": -1})");
  EXPECT_EQ(document.root()["a"].asInt(), 0);
  EXPECT_EQ(document.root()["b"].asSize(), 0);
  expectContains(document.status().message, "/a: expected an integer");
}

TEST(Json, RejectsOtherTypes) {
  expectContains(errorOf("-1", [](JsonValue root) { root.asSize(); }), "a size from 0 to 2^50");
  expectContains(errorOf("18446744073709551615", [](JsonValue root) { root.asInt(); }), "expected an integer");
  expectContains(errorOf("\"f8\"", [](JsonValue root) { root.asDType(); }), "unknown dtype 'f8'");
  expectContains(errorOf("1", [](JsonValue root) { root.asBool(); }), "expected true or false");
  expectContains(errorOf("{}", [](JsonValue root) { root.asInts(); }), "expected an array, found object");
}

TEST(Json, SizesAreBounded) {
  EXPECT_EQ(errorOf("{\"bytes\": 9000000000000000000}", [](JsonValue root) { root["bytes"].asSize(); }),
            "file: /bytes: expected a size from 0 to 2^50, found 9000000000000000000");
}

TEST(Json, SaysWhereTextIsNotJson) {
  JsonDocument document("file", "{\"a\": [1,\n 2");
  EXPECT_EQ(document.status().code, StatusCode::BadInput);
  expectContains(document.status().message, "not valid JSON");
  expectContains(document.status().message, "line 2");
  // Reading on is harmless.
  EXPECT_EQ(document.root()["a"].asInts().size(), 0u);
}

TEST(Json, NestingIsBounded) {
  auto nested = [](size_t depth) { return std::string(depth, '[') + "0" + std::string(depth, ']'); };
  EXPECT_TRUE(JsonDocument("file", nested(100)).status().ok());
  EXPECT_EQ(JsonDocument("file", "{\n\"a\": " + nested(100) + "}").status().message,
            "file: line 2: arrays and objects nested more than 100 levels deep");
  EXPECT_FALSE(JsonDocument("file", nested(1000000)).status().ok());
  // Brackets in strings open nothing.
  EXPECT_TRUE(JsonDocument("file", "[\"\\\"" + std::string(1000, '[') + "\"]").status().ok());
}

TEST(Json, Quotes) {
  EXPECT_EQ(quoteJson("a\"b\n"), R"("a\"b\n")");
  EXPECT_EQ(quoteJson("\xff"), "\"\xef\xbf\xbd\"");
}
