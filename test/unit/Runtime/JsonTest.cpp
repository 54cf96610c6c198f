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

TEST(Json, KeysAreSortedAndTheLastOfEqualOnesCounts) {
  JsonDocument document("file", R"({"b": 1, "a": {"x": [], "": "y"}, "b": [-2, true, null, 2.5], "ab": 3})");
  std::string members;
  document.root().forEachMember([&](const std::string &key, JsonValue value) {
    members += key + (value.kind() == JsonValue::Kind::Array ? "[] " : " ") + value.location() + ",";
  });
  EXPECT_EQ(members, "a /a,ab /ab,b[] /b,");
  EXPECT_EQ(document.root()["a"][""].location(), "/a/");
  EXPECT_EQ(document.root()["a"]["x"].asInts().size(), 0u);
  std::vector<JsonValue> elements;
  document.root()["b"].forEach([&](JsonValue element) { elements.push_back(element); });
  ASSERT_EQ(elements.size(), 4u);
  EXPECT_EQ(elements[0].asInt(), -2);
  EXPECT_TRUE(elements[1].asBool());
  EXPECT_TRUE(elements[2].isNull());
  EXPECT_EQ(elements[3].asDouble(), 2.5);
  EXPECT_EQ(elements[3].location(), "/b/3");
  EXPECT_TRUE(document.status().ok());
}

TEST(Json, TellsNumbersOfEverySizeApart) {
  JsonDocument document("file", "[9223372036854775807, -9223372036854775808, 18446744073709551615, 1e3, 0]");
  std::vector<JsonValue> elements;
  document.root().forEach([&](JsonValue element) { elements.push_back(element); });
  EXPECT_EQ(elements[0].asInt(), INT64_MAX);
  EXPECT_EQ(elements[1].asInt(), INT64_MIN);
  EXPECT_EQ(elements[2].asDouble(), 18446744073709551615.0);
  EXPECT_EQ(elements[1].asDouble(), -9223372036854775808.0);
  EXPECT_EQ(elements[2].kind(), JsonValue::Kind::Integer);
  EXPECT_EQ(elements[3].kind(), JsonValue::Kind::Real);
  EXPECT_TRUE(document.status().ok());
  expectContains(errorOf("1e999", [](JsonValue root) { root.asDouble(); }), "not valid JSON: number overflow");
}

TEST(Json, ReadsDocumentsThatFillManyBlocks) {
  std::string text = "[";
  for (int i = 0; i < 50000; ++i)
    text += "{\"number\":" + std::to_string(i) + ",\"name\":\"n" + std::to_string(i) + "\"},";
  JsonDocument document("file", text + "\"" + std::string(3 << 20, 'x') + "\"]");
  int64_t i = 0, sum = 0;
  document.root().forEach([&](JsonValue element) {
    if (element.kind() == JsonValue::Kind::String) {
      EXPECT_EQ(element.asString().size(), size_t(3) << 20);
      return;
    }
    sum += element["number"].asInt();
    EXPECT_EQ(element["name"].asString(), "n" + std::to_string(i++));
  });
  EXPECT_EQ(sum, int64_t(50000) * 49999 / 2);
  EXPECT_TRUE(document.status().ok());
}

TEST(Json, Quotes) {
  EXPECT_EQ(quoteJson("plain ~ \x7f"), "\"plain ~ \x7f\"");
  EXPECT_EQ(quoteJson("a\"b\n"), R"("a\"b\n")");
  EXPECT_EQ(quoteJson("\xff"), "\"\xef\xbf\xbd\"");
}
