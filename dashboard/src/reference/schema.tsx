/** The fields of a schema as a table; those of objects inside it open below. */
import { parts, typeOf, type OpenApi, type Schema } from "./document";

const MAX_DEPTH = 6;

export function Fields({ document, schema, depth = 0 }: { document: OpenApi; schema: Schema; depth?: number }) {
  const objects = parts(document, schema).filter((part) => part.properties);
  if (!objects.length) return <p class="type">{typeOf(schema)}</p>;
  return (
    <>
      {objects.map((object) => (
        <div class="fields">
          {objects.length > 1 && object.description && <p class="muted">{object.description}</p>}
          {Object.entries(object.properties ?? {}).map(([name, field]) => (
            <Field
              document={document} name={name} field={field} depth={depth}
              required={object.required?.includes(name) ?? false}
            />
          ))}
        </div>
      ))}
    </>
  );
}

interface FieldProps {
  document: OpenApi;
  name: string;
  field: Schema;
  required: boolean;
  depth: number;
}

function Field({ document, name, field, required, depth }: FieldProps) {
  const opens = depth < MAX_DEPTH && parts(document, field).some((part) => part.properties);
  const fallback = field.default;
  return (
    <div class="field">
      <p>
        <code class="name">{name}</code> <code class="type">{typeOf(field)}</code>
        {required && <small> required</small>}
        {fallback !== undefined && fallback !== null && <small> default {JSON.stringify(fallback)}</small>}
      </p>
      {field.description && <p class="muted">{field.description}</p>}
      {opens && (
        <details>
          <summary>fields</summary>
          <Fields document={document} schema={field} depth={depth + 1} />
        </details>
      )}
    </div>
  );
}
