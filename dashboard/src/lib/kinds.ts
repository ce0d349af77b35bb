/** The kinds of grading failures: who is to blame, and OpenAI's flag where its name differs. */

interface Kind {
  blame: "sample" | "grader" | "data" | "infrastructure";
  flag?: string;
  meaning: string;
}

/** A test compares these with the table in docs/graders.md. */
export const KINDS: Readonly<Record<string, Kind>> = {
  sample_parse_error: { blame: "sample", meaning: "the completion is not the JSON that a template reads" },
  sample_variable_error: { blame: "sample", flag: "invalid_variable_error", meaning: "a `sample.` variable is not in this completion" },
  truncated_observation_error: { blame: "sample", meaning: "the completion was cut before it could be graded" },
  invalid_variable_error: { blame: "data", meaning: "an `item.` variable is not in this row" },
  invalid_reference_error: { blame: "data", flag: "invalid_variable_error", meaning: "the reference of this row is not what the grader needs" },
  formula_parse_error: { blame: "grader", meaning: "`calculate_output` cannot be read" },
  formula_runtime: { blame: "grader", flag: "formula_parse_error", meaning: "`calculate_output` has no finite value, as in 1 / 0" },
  non_finite_reward: { blame: "grader", flag: "other_error", meaning: "the score is NaN or infinite" },
  internal_error: { blame: "infrastructure", flag: "other_error", meaning: "the grader broke, a bug of ours; its log says where" },
  other_error: { blame: "grader", meaning: "the grader met one of its limits" },
  python_grader_runtime_error: { blame: "grader", meaning: "the code of a python grader raised" },
  python_grader_timeout: { blame: "grader", flag: "unresponsive_reward_error", meaning: "the code of a python grader took longer than it may" },
  python_grader_server_error: { blame: "infrastructure", meaning: "the sandbox could not run the code" },
  model_grader_parse_error: { blame: "grader", meaning: "the judge's reply has no usable score" },
  model_grader_refusal_error: { blame: "grader", meaning: "the judge refused to answer" },
  model_grader_server_error: { blame: "infrastructure", meaning: "the judge could not be reached" },
  endpoint_server_error: { blame: "infrastructure", flag: "other_error", meaning: "the endpoint could not be reached" },
  endpoint_reply_error: { blame: "grader", flag: "other_error", meaning: "the endpoint's reply has no usable score" },
  unresponsive_reward_error: { blame: "infrastructure", meaning: "the grader gave no answer in time" },
};

/** What is known of a kind; a kind of a newer server is shown by its name alone. */
export const kindOf = (name: string): Kind | undefined => (Object.hasOwn(KINDS, name) ? KINDS[name] : undefined);
